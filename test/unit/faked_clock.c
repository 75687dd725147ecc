/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded: a clock_gettime() that takes a lock and lies, as libfaketime's does.
 * All clocks are FAKED_BY seconds off (default 0).  Tells a program that asks how
 * often it was called.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long faked_by, calls;

__attribute__((constructor)) static void setup(void)
{
	const char *by = getenv("FAKED_BY");

	faked_by = by ? atol(by) : 0;
}

long faked_clock_calls(void)
{
	return calls;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long r;

	pthread_rwlock_rdlock(&rwlock);
	pthread_mutex_lock(&mutex);
	calls++;
	/* Long enough to be waited for. */
	for (volatile int i = 0; i < 200; i++)
		;
	r = syscall(SYS_clock_gettime, clock, now);
	if (!r && clock == CLOCK_MONOTONIC && faked_by < 0)
		now->tv_sec /= 2; /* it does not go below 0 */
	else if (!r)
		now->tv_sec += faked_by;
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_unlock(&rwlock);
	return (int)r;
}
