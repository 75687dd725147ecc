/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock: 16 bytes, zero is unlocked.
 *
 * Laforet, Kashyap, Iorgulescu, Lawall, Lozi, "FlexGuard: Fast Mutual Exclusion
 * Independent of Subscription", SOSP 2025, Listing 2, with its queue repaired
 * and with sleepers left asleep while a waiter spins.  Why each step is safe:
 * docs/design/lock.md; the model: test/verify/lock.pml.
 *
 * Legend of the word
 *
 *   id       owner.  Set by whoever takes the lock, cleared by whoever releases
 *            it (not always the same thread: POSIX programs use a normal mutex
 *            as a semaphore).  Nobody else writes it.
 *   WAITERS  somebody may sleep on the word.  Set by a waiter before it sleeps,
 *            and by a woken one when it takes the lock or goes on waiting: a
 *            wake-up clears the bit on behalf of one sleeper while others may
 *            still sleep.  Errs on the side of being set: costs a useless wake-up.
 *   SPINNER  the head of the queue spins, has seen WAITERS and will either take
 *            the lock or clear this bit before it sleeps.  So a release may
 *            leave all sleepers asleep.  Errs on the side of being clear: costs
 *            a wake-up too many.  Means nothing without WAITERS.
 *
 *   word                     state
 *   0                        free
 *   id                       held; waiters, if any, spin
 *   id | WAITERS             held; the release wakes one
 *   id | WAITERS | SPINNER   held; the release leaves the bits and wakes nobody
 *   WAITERS | SPINNER        free, sleepers sleep on, the head is about to take it
 *   SPINNER [| id]           as without; a head that found WAITERS gone clears it
 */
#ifndef FG_LOCK_H
#define FG_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "lock/thread.h"
#include "monitor/protocol.h"
#include "sys/atomic.h"
#include "sys/futex.h"

extern char __libc_single_threaded;

struct fg_lock {
	uint32_t word;
	uint32_t tail; /* of the queue: fork epoch << 18 | node, 0 = empty (queue.c) */
	uint64_t prev; /* owner's: what was pending when it took this lock */
};
_Static_assert(sizeof(struct fg_lock) == 16, "has to fit into pthread types");

/* Out of line; both leave the publication (pending, cs, role) right. */
int fg_lock_slow(struct fg_lock *l, struct fg_self *t, const struct fg_deadline *deadline);
void fg_unlock_slow(struct fg_lock *l, struct fg_self *t);

/*
 * The holder test of the monitor is exact from here on, whatever happens in
 * between.  Returns what was pending before: an outer lock, or the lock that
 * an interrupted frame of this thread is taking, or 0.
 */
static inline uint64_t fg_announce(struct fg_lock *l, struct fg_self *t)
{
	uint64_t prev = t->pending;

	if (fg_unlikely(t->held))
		prev = fg_announce_outer(t);
	fg_set_pending(t, (uint64_t)(uintptr_t)l);
	return prev;
}

static inline void fg_acquired(struct fg_lock *l, struct fg_self *t, uint64_t prev)
{
	l->prev = prev;
	t->held++;
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
}

static inline bool fg_take_free(struct fg_lock *l, struct fg_self *t)
{
	uint32_t free = 0;

#ifdef FG_BROKEN_LOCK /* a test proves that the tests notice */
	fg_store_relaxed(&l->word, t->id);
	return true;
#endif
	if (__libc_single_threaded) {
		/* No other thread; a signal handler that comes in between leaves the word as it was. */
		if (fg_unlikely(l->word))
			return false;
		fg_store_relaxed(&l->word, t->id);
		fg_fence_local();
		return true;
	}
	return fg_cas_acquire(&l->word, &free, t->id); /* pairs with the release in fg_unlock */
}

/* 0, or ETIMEDOUT. */
static inline int fg_lock_until(struct fg_lock *l, struct fg_self *t, const struct fg_deadline *deadline)
{
	uint64_t prev = fg_announce(l, t);

	if (fg_unlikely(!fg_take_free(l, t))) {
		int r = fg_lock_slow(l, t, deadline);

		if (r) {
			fg_set_pending(t, prev);
			return r;
		}
	}
	fg_acquired(l, t, prev);
	return 0;
}

static inline bool fg_trylock(struct fg_lock *l, struct fg_self *t)
{
	uint64_t prev = fg_announce(l, t);
	uint32_t w;

	if (fg_unlikely(!fg_take_free(l, t))) {
		/* Free with sleepers or with a head about to take it is free. */
		do {
			w = fg_load_relaxed(&l->word);
			if (w & FG_WORD_ID) {
				fg_set_pending(t, prev);
				return false;
			}
		} while (!fg_cas_acquire(&l->word, &w, w | t->id));
	}
	fg_acquired(l, t, prev);
	return true;
}

static inline void fg_unlock(struct fg_lock *l, struct fg_self *t)
{
	uint32_t mine = t->id;
	uint64_t prev;

	/* Out of order, not ours, or somebody waits: elsewhere. */
	if (fg_unlikely(t->pending != (uint64_t)(uintptr_t)l || fg_load_relaxed(&l->word) != mine)) {
		fg_unlock_slow(l, t);
		return;
	}
	prev = l->prev;
	if (fg_unlikely(t->cs >= t->held))
		prev = fg_settle(t, prev); /* before the release: cs never counts what is not held */
	if (__libc_single_threaded) {
		fg_fence_local();
		fg_store_relaxed(&l->word, 0);
	} else if (fg_unlikely(!fg_cas_release(&l->word, &mine, 0))) {
		fg_unlock_slow(l, t);
		return;
	}
	t->held--;
	fg_set_pending(t, prev);
}

#endif
