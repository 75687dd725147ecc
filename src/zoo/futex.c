/* SPDX-License-Identifier: MIT */
/*
 * The pure blocking lock: 0 free, 1 held, 2 held and perhaps somebody sleeps.  Franke, Russell,
 * Kirkwood, OLS 2002; in this form Drepper, "Futexes Are Tricky", 2011, section 6 (mutex 3).
 */
#include <errno.h>

#include "zoo/zoo.h"

static bool trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return fg_cas_acquire(&m->s.u32[0], &none, 1);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	if (trylock(m))
		return true;
	/* After a timeout the 2 stays behind: one wake-up for nobody. */
	while (fg_xchg_acquire(&m->s.u32[0], 2))
		if (zoo_wait(m, &m->s.u32[0], 2, deadline) == -ETIMEDOUT)
			return false;
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	bool shared = zoo_is_shared(m);

	if (__atomic_exchange_n(&m->s.u32[0], 0, __ATOMIC_RELEASE) == 2)
		zoo_wake(&m->s.u32[0], 1, shared);
}

const struct zoo_lock zoo_futex = {.lock = lock, .trylock = trylock, .unlock = unlock};
