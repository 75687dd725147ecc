/* SPDX-License-Identifier: MIT */
/*
 * The plain spinlock: compare-and-swap until it succeeds.  Anderson, TPDS 1(1), 1990, section III.
 */
#include "zoo/zoo.h"

static bool trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return fg_cas_acquire(&m->s.u32[0], &none, 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return zoo_lock_by_trying(m, trylock, deadline);
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[0], 0);
}

const struct zoo_lock zoo_cas = {.lock = lock, .trylock = trylock, .unlock = unlock};
