/* SPDX-License-Identifier: MIT */
/*
 * Random fairness: a release makes the lock available, wakes all that wait, and they contend for it
 * again.  Franke, Russell, Kirkwood, OLS 2002, section 2, which names its price, the thundering
 * herd.
 *
 * The word: 0 free, 1 held, 2 held and perhaps somebody sleeps.  All are woken, so a thread that
 * was woken knows of no other sleeper and takes it with a 1; in futex.c, which wakes one, it must
 * be a 2.
 */
#include <errno.h>
#include <limits.h>

#include "zoo/zoo.h"

enum { FREE, HELD, CONTENDED };

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t free = FREE;

	return fg_cas_acquire(word_of(m), &free, HELD);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t held;

	while (!trylock(m)) {
		held = HELD;
		if (!fg_cas_relaxed(word_of(m), &held, CONTENDED) && held == FREE)
			continue;
		if (zoo_wait(m, word_of(m), CONTENDED, deadline) == -ETIMEDOUT)
			return false;
	}
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	bool shared = zoo_is_shared(m);

	if (__atomic_exchange_n(word_of(m), FREE, __ATOMIC_RELEASE) == CONTENDED)
		zoo_wake(word_of(m), INT_MAX, shared);
}

const struct zoo_lock zoo_futexrandom = {.lock = lock, .trylock = trylock, .unlock = unlock};
