/* SPDX-License-Identifier: MIT */
/*
 * Test-and-set: an atomic exchange until it finds the lock free.  Anderson, TPDS 1(1), 1990,
 * section II.
 */
#include "zoo/zoo.h"

static bool trylock(struct zoo_mutex *m)
{
	return !fg_xchg_acquire(&m->s.u32[0], 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return zoo_lock_by_trying(m, trylock, deadline);
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_tas = {.lock = lock, .trylock = trylock, .unlock = unlock};
