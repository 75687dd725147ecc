/* SPDX-License-Identifier: MIT */
/*
 * What a thread says of its locks when it holds, or takes, more than one.  To itself: `only` names
 * the latest, `held` counts them, and each keeps what `only` was before it, so that releases in
 * reverse order find that again.  To the monitor: `pending` is the latest, `cs` counts the others.
 * Whole after every instruction, for signal handlers: docs/design/lock.md, "Several locks".
 * Inline: a lock beside another one takes and releases through here (bench/instructions, "nested").
 */
#ifndef FG_HELD_H
#define FG_HELD_H

#include "lock/lock.h"
#include "runtime/slice.h"

static inline uint64_t address(const struct fg_lock *l)
{
	return (uint64_t)(uintptr_t)l;
}

/* The lock that was announced last, and is not released yet; 0: none, or unknown. */
static inline uint64_t pending_of(const struct fg_self *t)
{
	return t->only & ~(uint64_t)FG_ONLY_BITS;
}

static inline bool has_several(const struct fg_self *t)
{
	return t->only & FG_ONLY_SEVERAL;
}

/* How many locks of this thread others have released for it since it last asked. */
static inline uint32_t released_for_me(const struct fg_self *t)
{
	return fg_has_slot(t) && fg_thread_has_released_by_others(t) ?
		   fg_thread_released_by_others(t) :
		   0;
}

/* Those that this thread holds, and the one that it is taking, here or in a frame below. */
static inline uint32_t locks_announced(const struct fg_self *t)
{
	return has_several(t) ? t->held : pending_of(t) != 0;
}

/* Bits of its address that tell a thread's locks apart, for hints: 512 kB away there is another. */
static inline uint16_t part_of_address(uint64_t lock)
{
	return (uint16_t)(lock / sizeof(uint64_t));
}

/* Its release tells the standby of this lock (lock_spin.c). */
static inline bool has_standby(const struct fg_self *t, uint64_t lock)
{
	const struct fg_thread *me;

	if (!fg_has_slot(t))
		return false;
	me = fg_thread_mine(t);
	return fg_unlikely(me->notifies) && me->notifies_of == part_of_address(lock);
}

/*
 * It was given this lock, has it, and the word does not say so (offer.h): for the monitor it is one
 * beside the pending one.
 */
static inline bool was_given(const struct fg_self *t, uint64_t lock)
{
	return fg_has_slot(t) &&
	       fg_load_relaxed(&fg_thread_mine(t)->offer) == (lock | FG_OFFER_GIVEN);
}

/* This thread says that it has it: as its latest lock, or as its first.  Others: unknown. */
static inline bool says_it_holds(const struct fg_self *t, uint64_t lock)
{
	return pending_of(t) == lock ||
	       (has_several(t) && (t->first & ~(uint64_t)FG_ONLY_BITS) == lock);
}

/*
 * What a thread publishes that holds `held` locks, of which `latest` is the latest: what `only` was
 * before the next one.
 */
static inline void publish(struct fg_self *t, uint32_t held, uint64_t latest)
{
	uint64_t pending = latest & ~(uint64_t)FG_ONLY_BITS;

	if (held == 0) {
		t->unordered = 0;
		t->only = FG_ONLY_NONE;
		fg_set_pending(t, 0);
		fg_set_cs(t, 0);
	} else if (held == 1 && pending) {
		latest &= ~(uint64_t)FG_ONLY_SEVERAL;
		if (fg_unlikely(t->unordered)) {
			if (fg_slice_is_asked(t))
				latest |= FG_ONLY_SLOWLY;
			else
				t->unordered = 0;
		}
		t->only = latest;
		fg_set_pending(t, pending);
		fg_set_cs(t, (latest & FG_ONLY_SLOWLY) && was_given(t, pending));
	} else {
		t->only = latest | FG_ONLY_SEVERAL;
		/* Last: of a count of one a signal handler makes the only lock. */
		fg_fence_local();
		t->held = (uint16_t)held;
		fg_set_cs(t, held); /* all of them, so the order of these two does not matter */
		fg_set_pending(t, pending);
	}
}

/*
 * Announces that `l` is being taken by a thread that has announced `held` others.  A signal handler
 * between the first two stores, which takes locks and releases them, leaves `held` alone where it
 * counts already; where it does not, beside one lock, the handler leaves 2 there, too.
 */
static inline void announce_beside(struct fg_lock *l, struct fg_self *t, uint32_t held)
{
	t->held = (uint16_t)(held + 1);
	fg_fence_local();
	t->only = address(l) | FG_ONLY_SEVERAL;
	fg_set_cs(t, held);
	fg_set_pending(t, address(l));
}

/* Announces that `l` is being taken, besides what is held.  Returns what `only` was; 0: nothing. */
static inline uint64_t announce(struct fg_lock *l, struct fg_self *t)
{
	/*
	 * In this order: what a signal handler in between finds out, and leaves, is in the count
	 * that is read after it.  One without a slot publishes nothing, and is told of nothing.
	 */
	uint32_t gone = released_for_me(t), held = fg_has_slot(t) ? locks_announced(t) : 0;
	uint64_t prev = t->only;

	if (gone) { /* which ones it does not know */
		held = held > gone ? held - gone : 0;
		t->unordered |= held != 0;
		t->first = prev = FG_ONLY_SEVERAL;
	}
	if (held) {
		announce_beside(l, t, held);
		return prev;
	}
	t->only = address(l);
	fg_set_cs(t, 0);
	fg_set_pending(t, address(l));
	return 0;
}

/*
 * As one of `held`.  What was before the second one is kept in the thread, so that its release need
 * not look at the lock: others have its line by then.
 */
static inline void acquired_beside(struct fg_lock *l, struct fg_self *t, uint64_t prev,
				   uint32_t held)
{
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
	if (fg_likely(held == 2))
		t->first = prev;
	else
		l->prev = prev;
}

/*
 * Taken here and not in the fast path: as likely as not somebody waits when it
 * is released, and "slowly" makes the release come here at once.
 */
static inline void acquired_alone(struct fg_lock *l, struct fg_self *t)
{
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
	t->only = address(l) | FG_ONLY_SLOWLY;
}

static inline void acquired(struct fg_lock *l, struct fg_self *t, uint64_t prev)
{
	if (has_several(t)) {
		acquired_beside(l, t, prev, t->held);
		if (has_standby(t, address(l)) || was_given(t, address(l)))
			t->only |= FG_ONLY_SLOWLY;
	} else {
		acquired_alone(l, t);
	}
}

/* What `only` was before `l`, the latest of `held`. */
static inline uint64_t only_before(const struct fg_lock *l, const struct fg_self *t, uint32_t held)
{
	if (held == 2)
		return t->first;
	if (held == 1)
		return 0;
	return t->unordered ? FG_ONLY_SEVERAL : l->prev;
}

/*
 * What `only` is without `l`, one of `held`, in whatever order they are released.  FG_ONLY_SEVERAL
 * alone: which is the latest is unknown.
 */
static inline uint64_t only_without(const struct fg_lock *l, struct fg_self *t, uint32_t held)
{
	if (held == 1 || pending_of(t) == address(l))
		return only_before(l, t, held);
	if ((t->first & ~(uint64_t)FG_ONLY_BITS) == address(l))
		t->first = FG_ONLY_SEVERAL;
	else if (held == 2 && !pending_of(t))
		return t->first;
	t->unordered |= held > 2;
	return t->only;
}

/* Of a thread that holds nothing: keeps its next lock off the fast path. */
static inline void force_slow_path(struct fg_self *t)
{
	t->only = FG_ONLY_SLOWLY;
}

static inline void not_acquired(struct fg_self *t, uint64_t prev)
{
	publish(t, has_several(t) ? t->held - 1u : 0, prev);
	if (t->only == FG_ONLY_NONE) /* others have released what it was asked for */
		fg_slice_end(t);
}

#endif
