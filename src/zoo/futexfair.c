/* SPDX-License-Identifier: MIT */
/*
 * The futex paper's fair lock: the one that releases passes the lock to the first sleeper.  The
 * word says PASSED meanwhile, which looks held to everybody else.  Franke, Russell, Kirkwood, OLS
 * 2002, section 3.1.4 (futex_up_fair).  In the paper each release chooses between that and the
 * regular one: `futex-either`.  A waiter may be gone by the time it would be woken: then the lock
 * is freed after all.
 */
#include <errno.h>

#include "zoo/zoo.h"

enum { FREE, HELD, CONTENDED, PASSED };

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static bool take(struct zoo_mutex *m, uint32_t from, uint32_t to)
{
	return fg_cas_acquire(word_of(m), &from, to);
}

static bool trylock(struct zoo_mutex *m)
{
	return take(m, FREE, HELD);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	uint32_t word;
	int r;

	for (;;) {
		word = fg_load_relaxed(word_of(m));
		if (word == FREE) {
			if (take(m, FREE, CONTENDED)) /* others may sleep */
				return true;
			continue;
		}
		if (word == HELD && !take(m, HELD, CONTENDED))
			continue;
		r = zoo_wait(m, word_of(m), word == HELD ? CONTENDED : word, deadline);
		/* Only a woken thread claims it: FUTEX_WAIT says 0 to that one, timeout or not. */
		if (!r && take(m, PASSED, CONTENDED))
			return true;
		if (r == -ETIMEDOUT)
			return false;
	}
}

static bool lock_spinning(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	return zoo_spin_for(zoo_spin_ns_of(m), fg_load_relaxed(word_of(m)) == FREE && trylock(m)) ||
	       lock(m, deadline);
}

static void unlock(struct zoo_mutex *m)
{
	uint32_t held = HELD, passed = PASSED;
	bool shared = zoo_is_shared(m);

	if (fg_cas_release(word_of(m), &held, FREE))
		return;
	fg_store_release(word_of(m), PASSED);
	if (zoo_wake(word_of(m), 1, shared))
		return;
#ifdef FG_BROKEN_ZOO /* a test proves that the tests notice */
	return;
#endif
	/* Nobody there.  A waiter that came meanwhile sleeps on PASSED. */
	if (fg_cas_release(word_of(m), &passed, FREE))
		zoo_wake(word_of(m), 1, shared);
}

/*
 * Available to anybody, and one waiter is woken (futex_up).  Both ways go together: a waiter that
 * this one woke takes the lock if it is free, and if a later owner has passed it, claims it, as the
 * older waiter.
 */
static void unlock_regular(struct zoo_mutex *m)
{
	bool shared = zoo_is_shared(m);

	if (__atomic_exchange_n(word_of(m), FREE, __ATOMIC_RELEASE) == CONTENDED)
		zoo_wake(word_of(m), 1, shared);
}

const struct zoo_lock zoo_futexfair = {.lock = lock, .trylock = trylock, .unlock = unlock};
const struct zoo_lock zoo_futexfairspin = {
    .lock = lock_spinning, .trylock = trylock, .unlock = unlock, .spins = true};
const struct zoo_lock zoo_futexeither = {
    .lock = lock, .trylock = trylock, .unlock = unlock_regular, .unlock_fairly = unlock};
