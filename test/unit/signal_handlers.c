/* SPDX-License-Identifier: MIT */
/*
 * A handler takes another lock, contended, while its thread waits for, takes, holds or releases
 * one.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, h = PTHREAD_MUTEX_INITIALIZER;
static long count, handled, handled_seen;
static int stop, tids[4];

static void handler(int sig)
{
	int saved = errno;

	lock(&h);
	*(volatile long *)&handled += 1;
	for (volatile int i = 0; i < 200; i++)
		;
	unlock(&h);
	__atomic_add_fetch(&handled_seen, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void *work(void *arg)
{
	long n = 0;

	STORE(tids[(intptr_t)arg], (int)syscall(SYS_gettid));
	while (!LOAD(stop)) {
		lock(&m);
		*(volatile long *)&count += 1;
		for (volatile int i = 0; i < 100; i++)
			;
		unlock(&m);
		n++;
	}
	return (void *)n;
}

int main(int argc, char **argv)
{
	struct sigaction sa;
	pthread_t t[4];
	long sum = 0;

	check_begin(argv[0], 20);
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	sigaction(SIGUSR1, &sa, NULL);
	for (intptr_t i = 0; i < 4; i++)
		t[i] = start(work, (void *)i);
	for (int i = 0; i < 4; i++)
		UNTIL(LOAD(tids[i]));
	for (int i = 0; i < 8000; i++) {
		syscall(SYS_tgkill, getpid(), tids[i % 4], SIGUSR1);
		if (i % 16 == 0)
			sleep_us(50);
	}
	STORE(stop, 1);
	for (int i = 0; i < 4; i++)
		sum += (long)join(t[i]);
	CHECK_EQ(count, sum);
	CHECK_EQ(handled, handled_seen);
	CHECK(handled > 0);
	return 0;
}
