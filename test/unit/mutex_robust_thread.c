/* SPDX-License-Identifier: MIT */
/* A robust mutex whose owner has died: EOWNERDEAD, consistent, ENOTRECOVERABLE. */
#include "../tools/check.h"

static pthread_mutex_t m;

static void *die_holding(void *how)
{
	lock(&m);
	return NULL;
}

static void make(int type, int protocol)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, protocol), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
}

static void *take(void *arg)
{
	long r = pthread_mutex_lock(&m);

	if (r == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&m), 0);
	unlock(&m);
	return (void *)r;
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK};
	struct timespec ts;

	check_begin(argv[0], 20);
	for (int i = 0; i < 6; i++) {
		pthread_t t;

		make(types[i % 3], i < 3 ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT);
		join(start(die_holding, NULL));
		CHECK_EQ(pthread_mutex_trylock(&m), EOWNERDEAD);
		CHECK_EQ(try_elsewhere(&m), EBUSY);
		CHECK_EQ(pthread_mutex_consistent(&m), 0);
		unlock(&m);

		lock(&m);
		t = start(take, NULL);
		sleep_us(2000);
		unlock(&m);
		CHECK_EQ((long)join(t), 0);

		join(start(die_holding, NULL));
		ts = in_us(CLOCK_REALTIME, 5000000);
		CHECK_EQ(pthread_mutex_timedlock(&m, &ts), EOWNERDEAD);
		unlock(&m); /* not made consistent */
		CHECK_EQ(pthread_mutex_lock(&m), ENOTRECOVERABLE);
		CHECK_EQ(pthread_mutex_trylock(&m), ENOTRECOVERABLE);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
