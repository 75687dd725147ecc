/* SPDX-License-Identifier: MIT */
/*
 * Spin for a settable time, then block.  Ousterhout, "Scheduling Techniques for Concurrent
 * Systems", 1982; Karlin, Li, Manasse, Owicki, SOSP 1991; as one of the futex paper's variants
 * (section 4): the word is that of futex.c.
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
	if (zoo_spin_for(zoo_spin_ns_of(m), !fg_load_relaxed(&m->s.u32[0]) && trylock(m)))
		return true;
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

const struct zoo_lock zoo_spinpark = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .spins = true};
