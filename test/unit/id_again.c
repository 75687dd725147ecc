/* SPDX-License-Identifier: MIT */
/*
 * Numbers of threads come round again: while a thread is in a destructor that lasts, thousands of
 * others come and go, one of which is called as that one was.  Neither is taken for the other one:
 * by types that know their owner, and by a reader-writer lock.
 */
#include "../tools/check.h"

#define KEYS   40 /* more than values without memory: this key's destructor is after all others' */
#define OTHERS 4100 /* twice as many as there are generations of an index */

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		       error = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		       other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t key;
/* Of the thread that is there, the threads that come ask something. */
static unsigned is_there, asked, answered, ends;

static void destroy(void *arg)
{
	struct timespec soon;

	(void)arg;
	STORE(is_there, 1);
	for (unsigned n = 1; !LOAD(ends); n++) {
		UNTIL(LOAD(asked) == n || LOAD(ends));
		if (LOAD(ends))
			return;
		CHECK_EQ(pthread_mutex_trylock(&recursive), EBUSY);
		CHECK_EQ(pthread_mutex_trylock(&error), EBUSY);
		CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
		CHECK_EQ(pthread_mutex_unlock(&error), EPERM);
		soon = in_us(CLOCK_REALTIME, 1);
		CHECK_EQ(pthread_rwlock_timedrdlock(&rw, &soon), ETIMEDOUT);
		STORE(answered, n);
	}
}

static void *stay(void *arg)
{
	lock(&other);
	unlock(&other);
	CHECK_EQ(pthread_setspecific(key, &key), 0);
	return arg;
}

static void *ask(void *arg)
{
	lock(&recursive);
	lock(&error);
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	ADD(asked, 1);
	UNTIL(LOAD(answered) == LOAD(asked));
	unlock(&recursive);
	unlock(&error);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	for (int i = 0; i < KEYS; i++)
		CHECK_EQ(pthread_key_create(&key, i == KEYS - 1 ? destroy : NULL), 0);
	lock(&other);
	unlock(&other);
	t = start(stay, NULL);
	UNTIL(LOAD(is_there));
	for (int i = 0; i < OTHERS; i++)
		join(start(ask, NULL));
	STORE(ends, 1);
	join(t);
	return 0;
}
