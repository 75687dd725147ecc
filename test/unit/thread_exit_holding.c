/* SPDX-License-Identifier: MIT */
/* A thread that ends with a lock leaves it taken; no later thread is mistaken for the owner. */
#include "../tools/check.h"

static pthread_mutex_t error = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		       normal = PTHREAD_MUTEX_INITIALIZER;

static void *take_and_end(void *arg)
{
	lock(&error);
	lock(&recursive);
	lock(&normal);
	if (arg)
		pthread_exit(NULL);
	return NULL;
}

static void *not_me(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 300);
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	lock(&own);
	unlock(&own);
	CHECK_EQ(pthread_mutex_trylock(&error), EBUSY);
	CHECK_EQ(pthread_mutex_trylock(&recursive), EBUSY);
	CHECK_EQ(pthread_mutex_trylock(&normal), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&error), EPERM);
	CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
	CHECK_EQ(pthread_mutex_timedlock(&error, &ts), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_timedlock(&recursive, &ts), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_timedlock(&normal, &ts), ETIMEDOUT);
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (intptr_t round = 0; round < 2; round++) {
		pthread_mutex_t fresh_error = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
				fresh_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
				fresh = PTHREAD_MUTEX_INITIALIZER;

		join(start(take_and_end, (void *)round));
		for (int i = 0; i < 300; i++)
			join(start(not_me, NULL)); /* one at a time: identities come round again */
		not_me(NULL);
		error = fresh_error;
		recursive = fresh_recursive;
		normal = fresh;
	}
	return 0;
}
