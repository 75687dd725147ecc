/* SPDX-License-Identifier: MIT */
/*
 * What the loads of the lab share: NAME [-t THREADS] [-d SECONDS] [-n OPERATIONS] [-f FOLDER] [-u]
 * [-w].  Thread i runs on CPU i modulo their number; with -u every second one has nice -5.  At the
 * end one line of JSON says how often each has acquired the lock, to be compared with what the
 * kernel counted, and how long the first took.  Files are made in FOLDER, default /tmp.  With -w it
 * says "ready", begins when it is sent a line, and ends when its input does: meanwhile its locks
 * are there, and nobody takes them.
 */
#ifndef SYNCORD_LOAD_H
#define SYNCORD_LOAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 4096 };

/*
 * Of the load: what thread `i` prepares before anybody begins, and one operation, which returns
 * its number of acquisitions.
 */
static void prepare(int i);
static int operation(int i);

static atomic_bool stop;
static pthread_barrier_t all;
static long threads = 0, seconds = 3, limit = 0;
static bool two_classes, waits;
static const char *place = "/tmp";
static struct {
	_Alignas(64) unsigned long acquisitions;
	long long ns;
} done[THREADS_MAX];

static _Noreturn void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *thread(void *arg)
{
	int i = (int)(long)arg;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(i % (int)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
	/* Linux: of this thread */
	if (two_classes && i % 2 && setpriority(PRIO_PROCESS, 0, -5))
		fail("setpriority");
	prepare(i);
	pthread_barrier_wait(&all);
	if (waits)
		pthread_barrier_wait(&all);
	long long began = now();
	for (long n = 0;
	     !atomic_load_explicit(&stop, memory_order_relaxed) && (!limit || n < limit); n++)
		done[i].acquisitions += (unsigned long)operation(i);
	done[i].ns = now() - began;
	return NULL;
}

static void options(int argc, char **argv)
{
	for (int o; (o = getopt(argc, argv, "t:d:n:f:uw")) != -1;) {
		if (o == '?')
			exit(2);
		if (o == 'u')
			two_classes = true;
		else if (o == 'w')
			waits = true;
		else if (o == 'f')
			place = optarg;
		else
			*(o == 't' ? &threads : o == 'd' ? &seconds : &limit) = atol(optarg);
	}
}

int main(int argc, char **argv)
{
	options(argc, argv);
	if (chdir(place))
		fail(place);
	if (threads < 1)
		threads = sysconf(_SC_NPROCESSORS_ONLN);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	pthread_t ids[THREADS_MAX];
	pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread, (void *)i))
			fail("pthread_create");
	pthread_barrier_wait(&all);
	if (waits) {
		puts("ready");
		fflush(stdout);
		if (getchar() == EOF)
			_exit(1);
		pthread_barrier_wait(&all);
	}
	if (!limit) {
		sleep((unsigned)seconds);
		atomic_store(&stop, true);
	}
	unsigned long sum = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += done[i].acquisitions;
	}
	printf("{\"pid\": %d, \"acquisitions\": %lu, \"ns\": %lld, \"threads\": [", getpid(), sum,
	       done[0].ns);
	for (int i = 0; i < threads; i++)
		printf("%s%lu", i ? ", " : "", done[i].acquisitions);
	puts("]}");
	fflush(stdout);
	while (waits && getchar() != EOF)
		;
	return 0;
}
#endif
