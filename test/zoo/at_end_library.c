/* SPDX-License-Identifier: MIT */
/* The library of at_end.c. */
#include "at_end.h"

#include <unistd.h>

pthread_mutex_t of_library[AT_END] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				      PTHREAD_MUTEX_INITIALIZER};
int held_at_end;

static void *try_it(void *m)
{
	if (pthread_mutex_trylock(m))
		return m;
	pthread_mutex_unlock(m);
	return NULL;
}

static int is_held(pthread_mutex_t *m)
{
	void *held = NULL;
	pthread_t t;

	return !pthread_create(&t, NULL, try_it, m) && !pthread_join(t, &held) && held != NULL;
}

/* 0, or what is wrong. */
static int use(pthread_mutex_t *m)
{
	if (pthread_mutex_trylock(m))
		return 11;
	if (!is_held(m))
		return 12;
	pthread_mutex_unlock(m);
	if (pthread_mutex_lock(m))
		return 13;
	if (!is_held(m))
		return 14;
	pthread_mutex_unlock(m);
	return 0;
}

__attribute__((destructor)) static void last(void)
{
	int wrong = is_held(&of_library[0]) == held_at_end ? 0 : 10;

	if (held_at_end)
		pthread_mutex_unlock(&of_library[0]);
	for (int i = 0; i < AT_END && !wrong; i++)
		wrong = use(&of_library[i]);
	_exit(wrong);
}
