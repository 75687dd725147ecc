/* SPDX-License-Identifier: MIT */
/*
 * Threads that fight for one mutex for a while, and then see that no increment was lost.  Usage:
 * contend MILLISECONDS [exit|_exit|kill|UID|FOLDER]: how to end, whom to become after a while, or
 * where to go first. SIGTERM shortens the while.
 * contend once FILE: begins its second thread when the file is there, and that waits a few times
 * for the mutex.  Says whether there is a monitor's map in the process then.  contend until FILE:
 * waits on until there is one, for a minute.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long count, own[THREADS];
static int stop;

static void *work(void *arg)
{
	unsigned long *mine = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < 20; i++)
			__atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&mutex);
		*mine += 20;
	}
	return NULL;
}

static void *wait_once(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}

static bool is_monitored(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "bpf-map") != NULL;
	if (f)
		fclose(f);
	return found;
}

static int few_waits(const char *file, int least, int most)
{
	pthread_t t;

	puts("ready");
	fflush(stdout);
	while (access(file, F_OK))
		usleep(2000);
	/* One that comes too late for its wait may be any of them. */
	for (int i = 0; i < least || (i < most && !is_monitored()); i++) {
		pthread_mutex_lock(&mutex);
		pthread_create(&t, NULL, wait_once, NULL);
		usleep(20000);
		pthread_mutex_unlock(&mutex);
		pthread_join(t, NULL);
	}
	puts(is_monitored() ? "monitored" : "alone");
	return 0;
}

int main(int argc, char **argv)
{
	int ms = argc > 1 ? atoi(argv[1]) : 100;
	const char *end = argc > 2 ? argv[2] : "exit";
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	pthread_t t[THREADS];
	unsigned long sum = 0;
	sigset_t term;

	if (argc > 2 && !strcmp(argv[1], "once"))
		return few_waits(argv[2], 5, 5);
	if (argc > 2 && !strcmp(argv[1], "until"))
		return few_waits(argv[2], 0, 3000);
	if (*end == '/' && chdir(end))
		return 2;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, &own[i]);
	puts("ready");
	fflush(stdout);
	if (*end >= '0' && *end <= '9') {
		usleep(300000);
		if (setresuid(atoi(end), atoi(end), atoi(end)))
			return 2;
	}
	while (sigtimedwait(&term, NULL, &ts) < 0 && errno == EINTR)
		; /* it was stopped and goes on */
	if (!strcmp(end, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(end, "_exit"))
		_exit(3);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += own[i];
	}
	if (sum != count) {
		printf("lost: %lu of %lu\n", sum - count, sum);
		return 1;
	}
	puts("exact");
	return 0;
}
