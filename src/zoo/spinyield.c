/* SPDX-License-Identifier: MIT */
/*
 * Try a thousand times, then yield, and so on: the spinlock of tdb's benchmark in the futex paper
 * (Franke, Russell, Kirkwood, OLS 2002, section 4).
 */
#include "zoo/zoo.h"

#define TRIES 1000

static bool trylock(struct zoo_mutex *m)
{
	return !fg_load_relaxed(&m->s.u32[0]) && !fg_xchg_acquire(&m->s.u32[0], 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	for (;;) {
		for (int i = 0; i < TRIES; i++) {
			if (trylock(m))
				return true;
			zoo_pause();
		}
		if (deadline && fg_deadline_passed(deadline))
			return false;
		zoo_yield();
	}
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_spinyield = {.lock = lock, .trylock = trylock, .unlock = unlock};
