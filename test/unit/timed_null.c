/* SPDX-License-Identifier: MIT */
/*
 * No time at all given to a timed function: glibc takes what is free, and a reader-writer lock
 * without a limit.
 */
#include "../tools/check.h"

static void *write_once(void *arg)
{
	pthread_rwlock_t *rw = arg;

	CHECK_EQ(pthread_rwlock_wrlock(rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(rw), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timespec *volatile none = NULL; /* the headers say that it may not be */
	pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, native;
	pthread_mutexattr_t attr;
	pthread_t t;

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_mutex_timedlock(&m, none), 0);
	unlock(&m);
	CHECK_EQ(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, none), 0);
	unlock(&m);
	/* One that stays glibc's. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&native, &attr);
	CHECK_EQ(pthread_mutex_timedlock(&native, none), 0);
	unlock(&native);
	CHECK_EQ(pthread_mutex_clocklock(&native, CLOCK_MONOTONIC, none), 0);
	unlock(&native);
	CHECK_EQ(pthread_rwlock_timedrdlock(&rw, none), 0);
	t = start(write_once, &rw);
	sleep_us(1000);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	join(t);
	CHECK_EQ(pthread_rwlock_timedwrlock(&rw, none), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return 0;
}
