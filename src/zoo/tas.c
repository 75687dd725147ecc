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
	for (uint32_t n = 0; !trylock(m); n++) {
		if (deadline && n % 64 == 0 && fg_deadline_passed(deadline))
			return false;
		zoo_pause();
	}
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_tas = {.lock = lock, .trylock = trylock, .unlock = unlock};
