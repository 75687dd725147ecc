/* SPDX-License-Identifier: MIT */
/*
 * The ticket lock: draw a number, wait until it is called, at a distance that depends on how
 * many come first.  Reed, Kanodia, CACM 22(2), 1979; proportional backoff: Mellor-Crummey,
 * Scott, TOCS 9(1), 1991, section 2.2.
 */
#include "zoo/zoo.h"

/* Pauses for each number ahead of mine, and the most of them.  Not varied. */
#define PAUSES_A_NUMBER 16u
#define PAUSES_MAX	4096u

static uint32_t *next_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static uint32_t *called_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t called = fg_load_acquire(called_of(m)); /* pairs with unlock() */

	/* A number that is called at once, or none. */
	return fg_cas_acquire(next_of(m), &called, called + 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t mine = fg_add_relaxed(next_of(m), 1), called;

	(void)deadline; /* a number cannot be given back */
	while ((called = fg_load_acquire(called_of(m))) != mine)
		for (uint32_t i = 0; i < (mine - called) * PAUSES_A_NUMBER && i < PAUSES_MAX; i++)
			zoo_pause();
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(called_of(m), fg_load_relaxed(called_of(m)) + 1);
}

const struct zoo_lock zoo_ticket = {.lock = lock, .trylock = trylock, .unlock = unlock};
