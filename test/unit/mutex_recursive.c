/* SPDX-License-Identifier: MIT */
/* Recursive mutexes count: free for others after the last unlock only, EPERM for others always. */
#include "../tools/check.h"

static void *unlock_it(void *m)
{
	return (void *)(long)pthread_mutex_unlock(m);
}

static void exercise(pthread_mutex_t *m)
{
	enum { DEPTH = 1000 };

	CHECK_EQ(pthread_mutex_unlock(m), EPERM);
	for (int i = 0; i < DEPTH; i++) {
		struct timespec ts;

		switch (i % 4) {
		case 0: lock(m); break;
		case 1: CHECK_EQ(pthread_mutex_trylock(m), 0); break;
		case 2:
			ts = in_us(CLOCK_REALTIME, i % 8 == 2 ? -1000 : 1000);
			CHECK_EQ(pthread_mutex_timedlock(m, &ts), 0);
			break;
		default:
			ts = in_us(CLOCK_MONOTONIC, -1000);
			CHECK_EQ(pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &ts), 0);
		}
	}
	CHECK_EQ(in_thread(unlock_it, m), EPERM);
	for (int i = 0; i < DEPTH; i++) {
		if (i % 100 == 0 || i == DEPTH - 1)
			CHECK_EQ(try_elsewhere(m), EBUSY);
		unlock(m);
	}
	CHECK_EQ(try_elsewhere(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), EPERM);
	CHECK_EQ(pthread_mutex_destroy(m), 0);
}

int main(int argc, char **argv)
{
	pthread_mutex_t fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, m;

	check_begin(argv[0], 20);
	exercise(&fixed);
	mutex_of_type(&m, PTHREAD_MUTEX_RECURSIVE);
	exercise(&m);
	return 0;
}
