/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h): taking it.  Whatever it takes is announced
 * first, so that the monitor knows what a thread holds from the first store on.  A lock that is
 * free is taken past those that wait for it ("barging"); lock_wait.c is for one that is not.
 */
#include <errno.h>

#include "lock/held.h"
#include "lock/lock_paths.h"
#include "lock/rounds.h"
#include "runtime/decide.h"
#include "runtime/slice.h"
#include "sys/futex.h"

/*
 * How often a thread that yields looks whether the woken one has come: 100, 200, 400 us apart.  Not
 * varied; waits with and without: docs/design/lock.md, "Fairness".
 */
#define YIELD_SLEEPS 3u

/*
 * The common case while others sleep (when they do: rounds.h): this thread holds nothing and is
 * back at once, and the lock is free.  What barge_or_wait() would do, without the rest.  The
 * release: unlock_again().
 */
static inline bool lock_again(struct fg_lock *l, struct fg_self *t)
{
	const struct fg_thread *me;
	uint32_t word;

	if (t->only != FG_ONLY_SLOWLY || !rounds_are_short(t) || t->round_is_timed ||
	    !fg_has_slot(t) || fg_slice_may_ask())
		return false;
	me = fg_thread_mine(t);
	if (me->yields || me->leaves_cpu || fg_thread_has_released_by_others(t))
		return false;
	word = fg_load_relaxed(&l->word);
	if (word & FG_WORD_TAKEN)
		return false;
	t->only = address(l);
	fg_set_pending(t, address(l));
	if (!take_seen(l, t, &word, 0, 0)) {
		force_slow_path(t);
		return false;
	}
	acquired_alone(l, t);
	return true;
}

/*
 * This thread's turn is over, and it has woken a sleeper.  If it took the lock again at once, it
 * would overtake the woken thread each time.  So it lets that one come first, for a limited time.
 * Nobody else depends on this: the thread is only late.  What others do: parking_lot's release
 * hands the lock over every 0.5 ms or so, Linux's mutex (kernel/locking/mutex.c) when a woken
 * waiter asks for it, Go's sync.Mutex to a waiter that has waited for 1 ms.
 */
static __attribute__((noinline, cold)) void yield_to_woken(const struct fg_lock *l,
							   struct fg_self *t,
							   const struct fg_deadline *deadline)
{
	struct fg_thread *me = fg_thread_mine(t);
	struct fg_deadline soon;
	uint32_t i, nobody = 0;

	if (me->kept_busy != (uint32_t)address(l))
		return;
	me->yields = 0;
	/* Not with other locks in hand: their waiters have no part in it. */
	if (locks_announced(t) || fg_sections)
		return;
	for (i = 0; i < YIELD_SLEEPS && !(fg_load_relaxed(&l->word) & FG_WORD_ID); i++) {
		/* A woken thread takes the lock with WAITERS, so its release counts a wake-up. */
		if ((uint16_t)fg_load_relaxed(&l->wakes) != me->woke)
			return;
		if (are_apart(turn_clock(fg_now_ns()), t->turn_began_us, TURN_GRACE_NS))
			return;
		if (deadline && fg_deadline_passed(deadline))
			return;
		fg_deadline_in(&soon, SHORT_SLEEP_NS << i);
		/* Not on the count of wake-ups: those are for sleepers. */
		fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &soon);
	}
}

/*
 * Real-time threads of one priority share a CPU only where they sleep or yield.  Those that get the
 * lock by spinning each time do neither, and others of their priority, who have not come to wait
 * for the lock yet, wait for a CPU instead: 2 to 7 s were measured.  So at the end of a turn a
 * real-time thread yields, whether or not others sleep for the lock.  To go to sleep for it is not
 * enough, for that mostly ends before it has begun: the lock is free, or was released meanwhile.
 * Asked at one lock in 128 that was got by spinning (fg_thread.spun): to ask is a system call.
 */
static void real_time_turn(struct fg_self *t)
{
	uint32_t now;

	if (!fg_has_slot(t) || ++fg_thread_mine(t)->spun)
		return;
	now = turn_clock(fg_now_ns());
	if (!are_apart(now, t->turn_began_us, TURN_NS) || !fg_is_real_time(t))
		return;
	t->turn_began_us = now;
	/* The clock of its turns begins anew: those that sleep have theirs, too. */
	t->turn_over = 1;
	fg_thread_mine(t)->leaves_cpu = 1;
}

/* Not with other locks in hand, as above. */
static __attribute__((noinline, cold)) void leave_cpu(struct fg_self *t)
{
	if (locks_announced(t) || fg_sections)
		return;
	fg_thread_mine(t)->leaves_cpu = 0;
	fg_yield_to_equals(t);
}

static __attribute__((noinline)) int barge_or_wait(struct fg_lock *l, struct fg_self *t,
						   const struct fg_deadline *deadline,
						   bool may_offer)
{
	bool contended = true;
	uint32_t word = 0;
	uint64_t prev;

	round_ends(l, t);
	if (fg_has_slot(t) && fg_unlikely(fg_thread_mine(t)->yields))
		yield_to_woken(l, t, deadline);
	if (fg_has_slot(t) && fg_unlikely(fg_thread_mine(t)->leaves_cpu))
		leave_cpu(t);
	if (t->only == FG_ONLY_SLOWLY && (!t->keeps_busy || !rounds_are_short(t))) {
		/*
		 * What the fast path does, which this thread was kept off: no look first, which
		 * would be one more journey of the line, whose next word is the queue's tail.  But
		 * if owners are back at once and others sleep, it mostly fails, and takes the line
		 * from them.
		 */
		prev = announce(l, t);
		contended = !_fg_take_free_word(l, t, &word);
	} else {
		word = fg_load_relaxed(&l->word);
		prev = announce(l, t);
	}
	/* Free, perhaps with sleepers or with a head that is about to take it: barge. */
	if (contended)
		contended = !barge(l, t, &word);
	if (contended) {
		bool as_head = false;
		int r = _fg_lock_contended(l, t, &word, deadline, may_offer, &as_head);

		if (r) {
			not_acquired(t, prev);
			return r;
		}
		if (as_head) {
			if (fg_has_slot(t))
				fg_thread_mine(t)->sleepers = (word & FG_WORD_WAITERS) != 0;
			real_time_turn(t);
			if (fg_unlikely(t->times_head++ == 0))
				_fg_round_begins(l, t);
		}
	}
	acquired(l, t, prev);
	/* Not to wait for something else with the gate in hand. */
	if (fg_slice_may_ask() && !(deadline && deadline->unlikely) &&
	    (contended || (fg_load_relaxed(&l->word) & FG_WORD_WAITERS)))
		fg_slice_begin(t);
	return 0;
}

/* The rest: a function of its own, so that a lock beside others saves no register. */
static __attribute__((noinline)) int lock_long_way(struct fg_lock *l,
						   const struct fg_deadline *deadline,
						   bool may_offer)
{
	struct fg_self *t = fg_self();

	return lock_again(l, t) ? 0 : barge_or_wait(l, t, deadline, may_offer);
}

static __attribute__((noinline)) int lock_after_all(struct fg_lock *l,
						    const struct fg_deadline *deadline,
						    bool may_offer, uint64_t prev)
{
	not_acquired(&fg_self_tls, prev);
	return lock_long_way(l, deadline, may_offer);
}

/*
 * This thread holds `held` locks, and this one is free: what barge_or_wait() would do, without the
 * rest.  No look at the word: one that waits takes the line for the queue's tail anyway.
 */
static inline int lock_beside(struct fg_lock *l, struct fg_self *t,
			      const struct fg_deadline *deadline, bool may_offer, uint64_t prev,
			      uint32_t held)
{
	if (fg_unlikely(pending_of(t) == address(l) || t->round_is_timed || !fg_has_slot(t) ||
			fg_thread_has_released_by_others(t)))
		return lock_long_way(l, deadline, may_offer);
	announce_beside(l, t, held);
	if (fg_unlikely(!_fg_take_free(l, t)))
		return lock_after_all(l, deadline, may_offer, prev);
	acquired_beside(l, t, prev, held + 1);
	return 0;
}

static __attribute__((noinline)) int lock_beside_others(struct fg_lock *l,
							const struct fg_deadline *deadline,
							bool may_offer)
{
	struct fg_self *t = &fg_self_tls;
	uint64_t prev = t->only;
	uint32_t held = prev == FG_ONLY_NOT_SET_UP ? 0 : locks_announced(t);

	return held ? lock_beside(l, t, deadline, may_offer, prev, held) :
		      lock_long_way(l, deadline, may_offer);
}

/* First what is common: this thread holds one lock, as the fast path has left it. */
static inline int lock_slow(struct fg_lock *l, const struct fg_deadline *deadline, bool may_offer)
{
	struct fg_self *t = &fg_self_tls; /* set up, if it has a lock */
	uint64_t prev = t->only;

	if (fg_unlikely(prev & FG_ONLY_BITS || prev <= FG_ONLY_NOT_SET_UP))
		return lock_beside_others(l, deadline, may_offer);
	return lock_beside(l, t, deadline, may_offer, prev, 1);
}

__attribute__((noinline)) int _fg_lock_slow(struct fg_lock *l, const struct fg_deadline *deadline)
{
	return lock_slow(l, deadline, false);
}

__attribute__((noinline)) int _fg_lock_slow_any(struct fg_lock *l,
						const struct fg_deadline *deadline)
{
	return lock_slow(l, deadline, true);
}

__attribute__((noinline)) bool _fg_trylock_slow(struct fg_lock *l)
{
	struct fg_self *t = fg_self();
	uint64_t prev;

	round_ends(l, t);
	prev = announce(l, t);

	/* In a child of fork the head that has asked for it may be one of the parent. */
	if (!take(l, t, fg_epoch ? FG_WORD_HANDOFF : 0, 0)) {
		not_acquired(t, prev);
		if (t->round_is_timed && t->only == FG_ONLY_NONE)
			force_slow_path(t); /* there its round ends */
		return false;
	}
	acquired(l, t, prev);
	return true;
}

void _fg_lock_adopt(struct fg_lock *l, uint32_t former)
{
	struct fg_self *t = fg_self();
	uint32_t w = fg_load_relaxed(&l->word);
	uint64_t prev = announce(l, t);

	while ((w & FG_WORD_ID) == former &&
	       !fg_cas_relaxed(&l->word, &w, (w & ~FG_WORD_ID) | t->id))
		;
	acquired(l, t, prev);
}
