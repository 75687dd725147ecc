/* SPDX-License-Identifier: MIT */
/*
 * The FlexGuard lock: 24 bytes, zero is unlocked.
 *
 * Laforet, Kashyap, Iorgulescu, Lawall, Lozi, "FlexGuard: Fast Mutual Exclusion
 * Independent of Subscription", SOSP 2025, Listing 2, with its queue repaired
 * and with sleepers left asleep while a waiter spins.  Why each step is safe:
 * docs/design/lock.md; the model: test/verify/lock.pml.
 *
 * Legend of the word
 *
 *   id       owner, or one before it: a lock that is given away stays as it is (offer.h).  Set by
 *            whoever takes the lock, cleared by whoever releases it (not always the same thread:
 *            POSIX programs use a normal mutex as a semaphore), changed by the owner
 *            (_fg_offer_settle) and by its thread at its end (_fg_lock_adopt).  Nobody else
 *            writes it.
 *   WAITERS  somebody may sleep.  Set by a waiter before it sleeps,
 *            and by a woken one when it takes the lock or goes on waiting: a
 *            wake-up clears the bit on behalf of one sleeper while others may
 *            still sleep.  Errs on the side of being set: costs a useless wake-up.
 *   SPINNER  the head of the queue spins, has seen WAITERS, and will either take
 *            the lock or clear this bit before it sleeps.  So a release may leave
 *            all sleepers asleep, if DESIGNATED stands too: the head may be kept off its
 *            CPU.  Errs on the side of being clear: costs a wake-up too many.
 *            Only together with WAITERS.
 *   DESIGNATED
 *            one of the sleepers, the designated waiter, sleeps with a time limit and checks
 *            the lock every few ms; it will either take the lock or clear this bit
 *            before it sleeps for longer.  So a release may leave all
 *            asleep when other threads that are awake keep coming
 *            back.  Errs like SPINNER.  Never the thread that has set SPINNER.
 *
 *   HANDOFF  the head of the queue has asked for the lock, after it has been overtaken for some
 *            microseconds: those who come do not take it free, but queue.  Set by the head, and
 *            cleared by it when it takes the lock or goes; by others who take the lock after they
 *            have waited for it, so that a head that does not come holds up few.  Errs either way:
 *            clear, the head is overtaken for longer; set, those who come wait for nobody, for as
 *            long as they spin.  Nobody sleeps because of it.
 *
 * Sleepers do not sleep on the word, which changes with every owner, but on the
 * count of wake-ups, which the owner raises while it still holds the lock: a
 * sleeper reads it before it sets WAITERS, so a release that it has not been
 * early enough for makes its futex call return at once.
 *
 *   word                            state
 *   0                               free
 *   id                              held; waiters, if any, spin
 *   id | WAITERS                    held; the release clears WAITERS and wakes one
 *   id | WAITERS | SPINNER          held; the same, clears both
 *   id | WAITERS | DESIGNATED       held; the release leaves the bits and wakes nobody if this
 *                                   thread takes the lock often, else clears WAITERS and wakes one
 *   id | WAITERS | SPINNER | DESIGNATED
 *                                   held; the release leaves the bits and wakes nobody
 *   DESIGNATED, with an id or without
 *                                   one has been woken and is on its way
 *   WAITERS | DESIGNATED | ...      free, sleepers sleep on, somebody is about to take it
 *   HANDOFF, with an id or without  beside any of these: the release leaves the bit
 */
#ifndef FG_LOCK_H
#define FG_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/protocol.h"
#include "runtime/thread.h"
#include "sys/atomic.h"
#include "sys/futex.h"

extern char __libc_single_threaded;

/*
 * By role: what a wake-up clears, for all sleepers; what a release must find that leaves them
 * asleep; what outlives one without WAITERS; what keeps a newcomer from the lock.
 */
#define FG_WORD_WAKEUP_CLEARS (FG_WORD_WAITERS | FG_WORD_SPINNER)
#define FG_WORD_LEAVES_ASLEEP (FG_WORD_WAITERS | FG_WORD_DESIGNATED)
#define FG_WORD_OUTLIVES      (FG_WORD_DESIGNATED | FG_WORD_HANDOFF)
#define FG_WORD_TAKEN	      (FG_WORD_ID | FG_WORD_HANDOFF)

struct fg_lock {
	uint32_t word;
	uint32_t tail; /* of the queue: fork epoch << 18 | node, 0 = empty (queue.c) */
	uint64_t prev; /* owner's: what fg_self.only was when it took this one as the third or so;
			* mutex.c shows something there in the meantime */
	uint32_t tag;  /* not the lock's: for the type around it, which has a place to fill */
	/* what sleepers sleep on; counted up by the owner before a release that wakes */
	uint32_t wakes;
};
_Static_assert(sizeof(struct fg_lock) == 24, "has to fit into pthread types");

/*
 * Everything but the fast path: a thread that is not set up, several locks,
 * contention, time, a lock that another thread holds.  All leave the publication (pending, cs,
 * role) right.
 */
int _fg_lock_slow(struct fg_lock *l, const struct fg_deadline *deadline); /* 0 or ETIMEDOUT */
/* The same, if nobody asks the word who the owner is: it may be handed over past it (offer.h). */
int _fg_lock_slow_any(struct fg_lock *l, const struct fg_deadline *deadline);
bool _fg_trylock_slow(struct fg_lock *l);
int _fg_unlock_slow(struct fg_lock *l); /* 0: callers end with it, and need no stack */

/*
 * A release in two steps, for a type that has something to do in between.  First: for whom it is,
 * which that thread is told (fg_thread_released_for); 0: the caller's own, or nobody's.  Second, if
 * it is not 0.
 */
uint32_t _fg_lock_released_for(struct fg_lock *l);
void _fg_unlock_for(struct fg_lock *l, uint32_t owner);

/*
 * A hint before a release: this thread will not be back soon, however often it
 * has been lately.  So the release leaves nobody asleep for its sake.
 */
void _fg_lock_going_away(const struct fg_lock *l);

/*
 * After that release, which may have ended this thread's turn and woken somebody: its next lock
 * does not yield to that one, who has had all the time in between.
 */
static inline void _fg_lock_gone_away(void)
{
	struct fg_self *t = &fg_self_tls;

	if (fg_has_slot(t))
		fg_thread_mine(t)->yields = 0;
}

/*
 * The calling thread, which has a slot, ends: perhaps in the middle of a wait, or with a lock that
 * it was given.
 */
void _fg_lock_thread_ends(struct fg_self *t);

/* This thread holds it, by the id `former` that it had before: from now on by its own. */
void _fg_lock_adopt(struct fg_lock *l, uint32_t former);

/* *word: 0; what was seen instead if it is not free. */
static inline bool _fg_take_free_word(struct fg_lock *l, struct fg_self *t, uint32_t *word)
{
#ifdef FG_BROKEN_LOCK /* a test proves that the tests notice */
	fg_store_relaxed(&l->word, t->id);
	return true;
#endif
	if (__libc_single_threaded) {
		/*
		 * No other thread; a signal handler that comes in between leaves the word as it
		 * was.
		 */
		if (fg_unlikely(*word = fg_load_relaxed(&l->word)))
			return false;
		fg_store_relaxed(&l->word, t->id);
		fg_fence_local();
		return true;
	}
	/*
	 * Pairs with the release in _fg_unlock_fast.  No look at the word first: a
	 * load right after the unlock's atomic costs 2 ns of 18 (uncontended, x86).
	 */
	return fg_cas_acquire(&l->word, word, t->id);
}

static inline bool _fg_take_free(struct fg_lock *l, struct fg_self *t)
{
	uint32_t free = 0;

	return _fg_take_free_word(l, t, &free);
}

/*
 * True if this thread held nothing and has the lock now.  The holder test of
 * the monitor is exact from the first store on, whatever happens in between.
 */
static inline bool _fg_lock_fast(struct fg_lock *l)
{
	struct fg_self *t = &fg_self_tls;

	if (fg_unlikely(t->only != FG_ONLY_NONE))
		return false;
	t->only = (uint64_t)(uintptr_t)l;
	fg_set_pending(t, (uint64_t)(uintptr_t)l);
	if (fg_unlikely(!_fg_take_free(l, t))) {
		t->only = FG_ONLY_NONE; /* a signal handler may have had this very one meanwhile */
		return false;
	}
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
	return true;
}

/* In a process with one thread: the release that wakes nobody. */
static inline bool _fg_release_alone(struct fg_lock *l, uint32_t mine)
{
	if (fg_unlikely(l->word != mine))
		return false;
	fg_fence_local();
	fg_store_relaxed(&l->word, 0);
	return true;
}

/* True if this was the only lock of this thread, nobody waited for it, and it is released now. */
static inline bool _fg_unlock_fast(struct fg_lock *l)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t mine = t->id;

	if (fg_unlikely(t->only != (uint64_t)(uintptr_t)l))
		return false;
	if (__libc_single_threaded) {
		if (fg_unlikely(!_fg_release_alone(l, mine)))
			return false;
	} else if (fg_unlikely(!fg_cas_release(&l->word, &mine, 0))) {
		return false;
	}
	/* First: a signal handler puts both back as `only` says. */
	t->only = FG_ONLY_NONE;
	fg_fence_local();
	fg_set_pending(t, 0);
	return true;
}

static inline bool _fg_trylock(struct fg_lock *l)
{
	/* A held lock is left alone: no store to its line. */
	if (fg_load_relaxed(&l->word) & FG_WORD_ID)
		return false;
	return fg_likely(_fg_lock_fast(l)) || _fg_trylock_slow(l);
}

static inline int _fg_lock(struct fg_lock *l)
{
	return fg_likely(_fg_lock_fast(l)) ? 0 : _fg_lock_slow(l, NULL);
}

static inline void _fg_unlock(struct fg_lock *l)
{
	if (fg_unlikely(!_fg_unlock_fast(l)))
		_fg_unlock_slow(l);
}

#endif
