/* SPDX-License-Identifier: MIT */
/*
 * Test-and-test-and-set: looks until the lock is free, then tries; each failure doubles
 * a pause.  Anderson, TPDS 1(1), 1990, section III.
 */
#include "zoo/zoo.h"

#define BACKOFF_MAX 1024u /* pauses; not varied */

static bool trylock(struct zoo_mutex *m)
{
	return !fg_load_relaxed(&m->s.u32[0]) && !fg_xchg_acquire(&m->s.u32[0], 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t pauses = 4, n = 0;

	while (!trylock(m)) {
		for (uint32_t i = 0; i < pauses; i++)
			zoo_pause();
		while (fg_load_relaxed(&m->s.u32[0])) {
			if (deadline && n++ % ZOO_LOOK_EVERY == 0 && fg_deadline_passed(deadline))
				return false;
			zoo_pause();
		}
		if (pauses < BACKOFF_MAX)
			pauses *= 2;
	}
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_ttas = {.lock = lock, .trylock = trylock, .unlock = unlock};
