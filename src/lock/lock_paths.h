/* SPDX-License-Identifier: MIT */
/*
 * What the slow paths of the lock share: lock.c takes, lock_spin.c and lock_wait.c wait,
 * lock_release.c releases.  A thread that keeps a lock busy takes turns with those that sleep for
 * it:
 *
 *   - it has a turn of TURN_NS, from the end of its last sleep or its last turn;
 *   - then its release wakes the longest sleeper, and it sleeps in that one's place
 *     when it next has to wait (fg_self.turn_over);
 *   - if it has not had to wait for TURN_GRACE_NS, it wakes another and yields: it does
 *     not take this free lock before the other has (fg_thread.yields).
 *
 * Constants were measured on a 2-CPU VM with Linux 6.18, those that say so were not varied.  Titles
 * in quotation marks: docs/design/experiments.md.
 */
#ifndef FG_LOCK_PATHS_H
#define FG_LOCK_PATHS_H

#include "arch/arch.h"
#include "lock/held.h"
#include "lock/lock.h"
#include "runtime/count.h"

/* Turns of 10 and 20 ms: 0 to 5 % more throughput, and less fair ("Longer turns"). */
#define TURN_NS 5000000u

/* What waiters have of it: docs/design/lock.md, "Fairness".  Not varied. */
#define TURN_GRACE_NS 1000000u

/*
 * A thread that is given the lock (offer.h) looks at the word at one in so many: whether others
 * sleep, whom only a release that knows of them wakes; sooner if they did.  fg_self.times_head
 * counts them.  Without any, 1 % more sections of 1 us; with 1 in place of 4, no difference
 * (simulated: docs/design/many-cpus.md, "The hand-over by one line").
 */
#define LOOKS	     16u
#define LOOKS_ASLEEP 4u

/*
 * Threads that have their turns in one queue count alike: by the count alone all would look in the
 * same round, and in the 15 others none.
 */
static inline bool looks_at_word(const struct fg_self *t, bool others_slept)
{
	return (t->times_head + fg_id_index(t->id)) % (others_slept ? LOOKS_ASLEEP : LOOKS) == 0;
}

/* About a wake-up, which takes 76 us.  Not varied. */
#define SHORT_SLEEP_NS 100000u

/* Or so many pauses, where the clock stands still for a tick. */
static inline void pause_until(uint64_t until, uint32_t most)
{
	for (uint32_t n = 0; n < most && fg_now_ns() < until; n++)
		fg_pause();
}

/*
 * Clocks of turns: the low 32 bits of microseconds, so that they wrap in 71 minutes and not in 4 s.
 */
static inline uint32_t turn_clock(uint64_t ns)
{
	return (uint32_t)(ns / 1000);
}

/* At least so many ns lie between two of them. */
static inline bool are_apart(uint32_t now, uint32_t since, uint32_t ns)
{
	return now - since >= ns / 1000;
}

/* Has this thread released this very lock often lately, while others slept? */
static inline bool keeps_busy(const struct fg_lock *l, const struct fg_self *t)
{
	return t->keeps_busy && fg_thread_mine(t)->kept_busy == (uint32_t)address(l);
}

/*
 * Takes a free word, seen as `*w`, without the flags in `drop` and with those in `set`.  *w: as it
 * was seen last, before it was taken or as somebody else's.
 */
static inline bool take_seen(struct fg_lock *l, struct fg_self *t, uint32_t *w, uint32_t drop,
			     uint32_t set)
{
#ifdef FG_BROKEN_LOCK
	return _fg_take_free(l, t);
#endif
	if (__libc_single_threaded) { /* as in _fg_take_free */
		if (*w & FG_WORD_ID)
			return false;
		fg_store_relaxed(&l->word, (*w & ~drop) | set | t->id);
		fg_fence_local();
		return true;
	}
	while (!(*w & FG_WORD_ID))
		/* pairs with release() */
		if (fg_cas_acquire(&l->word, w, (*w & ~drop) | set | t->id))
			return true;
	return false;
}

static inline bool take(struct fg_lock *l, struct fg_self *t, uint32_t drop, uint32_t set)
{
	uint32_t w = fg_load_relaxed(&l->word);

	return take_seen(l, t, &w, drop, set);
}

/* Takes the word, seen as `*word`, past those that wait, if it is free and not promised. */
static inline bool barge(struct fg_lock *l, struct fg_self *t, uint32_t *word)
{
	return !(*word & FG_WORD_TAKEN) && take_seen(l, t, word, 0, 0);
}

/* Sleepers are told apart by the CPU that they ran on last. */
static inline uint32_t channel(const struct fg_self *t)
{
	return 1u << fg_load_relaxed(t->cpu) % 32;
}

/* `near`: one that ran on this CPU last, if there is one. */
static inline void wake_one(struct fg_lock *l, const struct fg_self *t, bool near)
{
#ifndef FG_BROKEN_WAKE /* a test proves that the tests notice */
	/* An address, not an access. */
	if (!near || !fg_futex_wake(&l->wakes, 1, channel(t)))
		fg_futex_wake(&l->wakes, 1, FG_FUTEX_ANY);
	fg_count(t, FG_STAT_WAKEUPS, 1);
#endif
}

/*
 * The lock is held, its word has been seen as `*word`, and it is announced.  0, or ETIMEDOUT.
 * *as_head: it was got by spinning at the head of the queue, or where nobody was in it, or without
 * a sleep on the way to one; then *word is what it was right before, or 0 if it was given the lock.
 * `may_offer`: to be given it (offer.h).
 */
int _fg_lock_contended(struct fg_lock *l, struct fg_self *t, uint32_t *word,
		       const struct fg_deadline *deadline, bool may_offer, bool *as_head);

#endif
