/* SPDX-License-Identifier: MIT */
/*
 * exec while locks are held and waited for, by the main thread and by another; the new image locks
 * as usual.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char **args;
static long count;

static void *contend(void *arg)
{
	for (;;) {
		lock(&m);
		sleep_us(10);
		unlock(&m);
		sleep_us(10); /* glibc's has no turns: who is to exec gets it, too */
	}
	return NULL;
}

static void *run_exec(void *arg)
{
	lock(&m);
	execv("/proc/self/exe", args);
	_exit(1);
}

static void *work(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int round = argc > 1 ? atoi(argv[1]) : 0;
	char next[16];
	char *const next_args[] = {argv[0], next, NULL};
	pthread_t t[3];

	check_begin(argv[0], 20);
	for (int i = 0; i < 3; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_EQ(count, 6000);
	if (round == 12)
		return 0;
	snprintf(next, sizeof next, "%d", round + 1);
	args = (char **)next_args;
	for (int i = 0; i < 3; i++)
		start(contend, NULL);
	sleep_us(2000);
	if (round & 1)
		join(start(run_exec, NULL));
	run_exec(NULL);
}
