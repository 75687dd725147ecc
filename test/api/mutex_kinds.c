/* SPDX-License-Identifier: MIT */
/*
 * The three kinds of mutexes, made by initialisers, by functions and of zeroes: who may lock and
 * unlock them when.
 */
#include "api.h"

static void normal(fg_mutex_t *m)
{
	CHECK_EQ(fg_mutex_lock(m), 0);
	CHECK_EQ(fg_mutex_trylock(m), EBUSY);
	CHECK_EQ(in_thread(api_try, m), EBUSY);
	CHECK_EQ(fg_mutex_destroy(m), EBUSY);
	CHECK_EQ(in_thread(api_unlock, m), 0);
	CHECK_EQ(fg_mutex_trylock(m), 0);
	CHECK_EQ(fg_mutex_unlock(m), 0);
	CHECK_EQ(in_thread(api_try, m), 0);
	CHECK_EQ(fg_mutex_destroy(m), 0);
}

static void recursive(fg_mutex_t *m)
{
	CHECK_EQ(fg_mutex_unlock(m), EPERM);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(i & 1 ? fg_mutex_trylock(m) : fg_mutex_lock(m), 0);
	CHECK_EQ(in_thread(api_unlock, m), EPERM);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(in_thread(api_try, m), EBUSY);
		CHECK_EQ(fg_mutex_unlock(m), 0);
	}
	CHECK_EQ(in_thread(api_try, m), 0);
	CHECK_EQ(fg_mutex_unlock(m), EPERM);
	CHECK_EQ(fg_mutex_destroy(m), 0);
}

static void errorcheck(fg_mutex_t *m)
{
	CHECK_EQ(fg_mutex_unlock(m), EPERM);
	CHECK_EQ(fg_mutex_lock(m), 0);
	CHECK_EQ(fg_mutex_lock(m), EDEADLK);
	CHECK_EQ(fg_mutex_trylock(m), EBUSY);
	CHECK_EQ(in_thread(api_unlock, m), EPERM);
	CHECK_EQ(in_thread(api_try, m), EBUSY);
	CHECK_EQ(fg_mutex_unlock(m), 0);
	CHECK_EQ(in_thread(api_try, m), 0);
	CHECK_EQ(fg_mutex_destroy(m), 0);
}

int main(int argc, char **argv)
{
	static fg_mutex_t zeroes;
	fg_mutex_t n = FG_MUTEX_INIT, r = FG_RECURSIVE_MUTEX_INIT, e = FG_ERRORCHECK_MUTEX_INIT,
		   movable = FG_MOVABLE_MUTEX_INIT;

	api_begin(argv[0], 20);
	normal(&zeroes);
	normal(&n);
	recursive(&r);
	errorcheck(&e);
	normal(&movable);
	CHECK_EQ(fg_mutex_init(&n, FG_MUTEX_MOVABLE), 0);
	normal(&n);
	CHECK_EQ(fg_mutex_init(&n, FG_MUTEX_NORMAL), 0);
	normal(&n);
	CHECK_EQ(fg_mutex_init(&n, FG_MUTEX_RECURSIVE), 0);
	recursive(&n);
	CHECK_EQ(fg_mutex_init(&n, FG_MUTEX_ERRORCHECK), 0);
	errorcheck(&n);
	CHECK_EQ(fg_mutex_init(&n, -1), EINVAL);
	CHECK_EQ(fg_mutex_init(&n, 3), EINVAL);
	return 0;
}
