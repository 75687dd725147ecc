/* SPDX-License-Identifier: MIT */
/*
 * Try, then yield, and so on; Franke, Russell, Kirkwood, OLS 2002: once (section 2, "yield the
 * processor until the thread is rescheduled and then the lock is tried"), or a thousand times, the
 * spinlock of its tdb benchmark (4.2).
 */
#include "zoo/zoo.h"

static bool trylock(struct zoo_mutex *m)
{
	return !fg_load_relaxed(&m->s.u32[0]) && !fg_xchg_acquire(&m->s.u32[0], 1);
}

static inline bool lock_trying(struct zoo_mutex *m, const struct fg_deadline *deadline, int tries)
{
	for (;;) {
		for (int i = 0; i < tries; i++) {
			if (trylock(m))
				return true;
			zoo_pause();
		}
		if (deadline && fg_deadline_passed(deadline))
			return false;
		zoo_yield();
	}
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return lock_trying(m, deadline, 1000);
}

static bool lock_at_once(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return lock_trying(m, deadline, 1);
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_spinyield = {.lock = lock, .trylock = trylock, .unlock = unlock};
const struct zoo_lock zoo_yieldonly = {.lock = lock_at_once, .trylock = trylock, .unlock = unlock};
