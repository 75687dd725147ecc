/* SPDX-License-Identifier: MIT */
/*
 * A destructor of thread-specific data, in whichever round, releases what its thread has locked:
 * mutexes of all types, and what an earlier destructor has locked; until then they are its own,
 * with all that that means.  A wait on a condition variable releases and takes them as well.  What
 * is left locked stays so, and nobody else is taken for its owner.
 */
#include "../tools/check.h"

#include <limits.h>

enum { KEYS = 3, TYPES = 4 };
static const int type[TYPES] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
static pthread_mutex_t before[TYPES], between[TYPES],
    left = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_key_t key[KEYS];
static int unlock_round, lock_round, leave; /* of this run */
static long released;
static __thread int round_of[KEYS];

static int knows_owner(int i)
{
	return type[i] == PTHREAD_MUTEX_RECURSIVE || type[i] == PTHREAD_MUTEX_ERRORCHECK;
}

static void still_mine(pthread_mutex_t *m, int i)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 100);

	CHECK_EQ(try_elsewhere(m), EBUSY);
	if (type[i] == PTHREAD_MUTEX_RECURSIVE) {
		lock(m);
		CHECK_EQ(pthread_mutex_trylock(m), 0);
		unlock(m);
		unlock(m);
	} else {
		CHECK_EQ(pthread_mutex_trylock(m), EBUSY);
	}
	if (type[i] == PTHREAD_MUTEX_ERRORCHECK) {
		CHECK_EQ(pthread_mutex_lock(m), EDEADLK);
		CHECK_EQ(pthread_mutex_timedlock(m, &ts), EDEADLK);
	}
	CHECK_EQ(try_elsewhere(m), EBUSY);
}

static void release(pthread_mutex_t *m, int i)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 100);

	still_mine(m, i);
	CHECK_EQ(pthread_cond_timedwait(&c, m, &ts), ETIMEDOUT);
	still_mine(m, i);
	unlock(m);
	if (knows_owner(i))
		CHECK_EQ(pthread_mutex_unlock(m), EPERM);
	CHECK_EQ(try_elsewhere(m), 0);
	ADD(released, 1);
}

/*
 * Each key has a destructor of its own; all do the same, in their order.  The first comes before
 * the library's.
 */
static void destroy(int k)
{
	int round = ++round_of[k];

	if (k == 0 && round == lock_round)
		for (int i = 0; i < TYPES; i++)
			lock(&between[i]);
	if (k == KEYS - 1 && round == unlock_round)
		for (int i = 0; i < TYPES; i++) {
			release(&before[i], i);
			release(&between[i], i);
		}
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
		CHECK_EQ(pthread_setspecific(key[k], &key), 0);
}

static void destroy0(void *arg)
{
	destroy(0);
}
static void destroy1(void *arg)
{
	destroy(1);
}
static void destroy2(void *arg)
{
	destroy(2);
}

static void *work(void *arg)
{
	if (leave)
		lock(&left);
	for (int i = 0; i < TYPES; i++)
		lock(&before[i]);
	for (int k = 0; k < KEYS; k++)
		CHECK_EQ(pthread_setspecific(key[k], &key), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	static void (*const f[KEYS])(void *) = {destroy0, destroy1, destroy2};
	int runs = 0;

	check_begin(argv[0], 30);
	CHECK_EQ(pthread_key_create(&key[0], f[0]), 0);
	for (int k = 1; k < KEYS; k++)
		late_key(&key[k], f[k]);
	for (int i = 0; i < TYPES; i++) {
		mutex_of_type(&before[i], type[i]);
		mutex_of_type(&between[i], type[i]);
	}
	for (unlock_round = 1; unlock_round <= PTHREAD_DESTRUCTOR_ITERATIONS; unlock_round++)
		for (lock_round = 1; lock_round <= unlock_round; lock_round++, runs++)
			join(start(work, NULL));
	CHECK_EQ(released, 2 * TYPES * runs);

	leave = 1;
	unlock_round = lock_round = 2;
	join(start(work, NULL));
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(try_elsewhere(&left), EBUSY);
		CHECK_EQ(pthread_mutex_unlock(&left), EPERM);
	}
	return 0;
}
