/* SPDX-License-Identifier: MIT */
/*
 * Error-checking mutexes: EDEADLK for the owner, EPERM for everybody else, and the lock unharmed by
 * both.
 */
#include "../tools/check.h"

static void *unlock_it(void *m)
{
	return (void *)(long)pthread_mutex_unlock(m);
}

static void exercise(pthread_mutex_t *m)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000000);

	CHECK_EQ(pthread_mutex_unlock(m), EPERM);
	lock(m);
	CHECK_EQ(pthread_mutex_lock(m), EDEADLK);
	CHECK_EQ(pthread_mutex_timedlock(m, &ts), EDEADLK);
	ts = in_us(CLOCK_MONOTONIC, 1000000);
	CHECK_EQ(pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &ts), EDEADLK);
	CHECK_EQ(pthread_mutex_trylock(m), EBUSY);
	CHECK_EQ(in_thread(unlock_it, m), EPERM);
	CHECK_EQ(try_elsewhere(m), EBUSY);
	unlock(m);
	CHECK_EQ(pthread_mutex_unlock(m), EPERM);
	CHECK_EQ(in_thread(unlock_it, m), EPERM);
	CHECK_EQ(try_elsewhere(m), 0);
	lock(m);
	unlock(m);
	CHECK_EQ(pthread_mutex_destroy(m), 0);
}

int main(int argc, char **argv)
{
	pthread_mutex_t fixed = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, m;

	check_begin(argv[0], 20);
	exercise(&fixed);
	mutex_of_type(&m, PTHREAD_MUTEX_ERRORCHECK);
	exercise(&m);
	return 0;
}
