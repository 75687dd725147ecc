/* SPDX-License-Identifier: MIT */
/*
 * The first futexes, those of Linux 2.5.7: FUTEX_DOWN and FUTEX_UP over a count that is 1
 * (available), 0 (taken) or -1 (and somebody sleeps).  Franke, Russell, Kirkwood, OLS 2002, section
 * 3.1.1; FUTEX_WAIT and FUTEX_WAKE took their place (3.1.3), at a price of 1.5 to 3.5 % on tdb.
 *
 *   down  decrements; from 1, it has the lock.  Else the kernel puts it to sleep and, each time
 *         that it wakes, decrements for it, but never below -1.  An owner by this way wakes the
 *         next, which sets the -1 again: a hand-over wakes two, which the later protocol saves.
 *   up    increments; from 0, it is done.  Else the kernel sets it to 1 and wakes the first.
 *
 * No kernel of today has the two calls.  Up's second half is still one call, FUTEX_WAKE_OP, which
 * stores and wakes.  Down's loop runs in user space around FUTEX_WAIT: the claim comes a return
 * from the kernel later than it did in 2002.
 *
 * The word is 1 - count, so that all zeroes is free.
 */
#include <errno.h>
#include <linux/futex.h>

#include "lock/mutex.h"
#include "zoo/zoo.h"

enum { AVAILABLE, TAKEN, WITH_SLEEPERS };

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t available = AVAILABLE;

	return fg_cas_acquire(word_of(m), &available, TAKEN);
}

/* Of the count.  Whether it was available. */
static bool decrement(struct zoo_mutex *m)
{
	uint32_t word = fg_load_relaxed(word_of(m));

	while (word < WITH_SLEEPERS)
		if (fg_cas_acquire(word_of(m), &word, word + 1))
			return word == AVAILABLE;
	return false;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	if (decrement(m))
		return true;
	/* FUTEX_DOWN.  One that gives up was not woken, so it owes no other sleeper anything. */
	do {
		if (zoo_wait(m, word_of(m), WITH_SLEEPERS, deadline) == -ETIMEDOUT)
			return false;
	} while (!decrement(m));
	zoo_wake(word_of(m), 1, zoo_is_shared(m));
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	uint32_t *word = word_of(m);
	bool shared = zoo_is_shared(m);
	int op = FUTEX_WAKE_OP | (shared ? 0 : FUTEX_PRIVATE_FLAG);

	if (__atomic_fetch_sub(word, 1, __ATOMIC_RELEASE) == TAKEN)
		return;
	/*
	 * FUTEX_UP: sets the word, which is a release as the kernel's atomic operations on user
	 * memory are, and wakes one.  The comparison is never true: it would wake another.
	 */
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	if (fg_syscall6(SYS_futex, (long)word, op, 1, 0, (long)word,
			FUTEX_OP(FUTEX_OP_SET, AVAILABLE, FUTEX_OP_CMP_EQ, -1)) >= 0)
		return;
	/* Refused by a filter of system calls, perhaps. */
	fg_store_release(word, AVAILABLE);
	zoo_wake(word, 1, shared);
}

const struct zoo_lock zoo_updown = {.lock = lock, .trylock = trylock, .unlock = unlock};
