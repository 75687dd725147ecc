/* SPDX-License-Identifier: MIT */
/*
 * What a thread publishes when it holds, or takes, more than one lock: `pending`
 * names the latest, `cs` counts the others, and lock->prev chains them, so that
 * releases in reverse order find what was pending before.  Inline: a lock beside another one
 * takes and releases through here (bench/instructions, "nested").
 */
#ifndef FG_HELD_H
#define FG_HELD_H

#include "lock/lock.h"

static inline uint64_t address(const struct fg_lock *l)
{
	return (uint64_t)(uintptr_t)l;
}

/* The lock that was announced last, and is not released yet. */
static inline uint64_t pending_of(const struct fg_self *t)
{
	return t->only == FG_ONLY_SEVERAL ? t->pending : t->only;
}

/* How many locks of this thread others have released for it since it last asked. */
static inline uint32_t released_for_me(const struct fg_self *t)
{
	return fg_has_slot(t) && fg_thread_has_released_by_others(t) ?
		   fg_thread_released_by_others(t) :
		   0;
}

/* Locks that this thread is known to have, the one that an interrupted frame is taking included. */
static inline uint32_t locks_held(const struct fg_self *t)
{
	uint32_t held = t->only == FG_ONLY_SEVERAL ? t->held : t->only != FG_ONLY_NONE;
	uint32_t gone = released_for_me(t);

	return held > gone ? held - gone : 0;
}

/* What a thread publishes that holds `held` locks, and holds or takes `pending` as the latest. */
static inline void publish(struct fg_self *t, uint32_t held, uint64_t pending)
{
	if (held == 0) {
		t->unordered = 0;
		t->only = FG_ONLY_NONE;
		fg_set_pending(t, 0);
		fg_set_cs(t, 0);
	} else if (held == 1 && pending && !t->unordered) {
		t->only = pending;
		fg_set_pending(t, pending);
		fg_set_cs(t, 0);
	} else {
		t->held = (uint16_t)held;
		t->pending = pending;
		fg_fence_local();
		t->only = FG_ONLY_SEVERAL;
		fg_set_cs(t, held); /* all of them, so the order of these two does not matter */
		fg_set_pending(t, pending);
	}
}

/* Announces that `l` is being taken by a thread that holds `held` others. */
static inline void announce_beside(struct fg_lock *l, struct fg_self *t, uint32_t held)
{
	t->held = (uint16_t)held;
	t->pending = address(l);
	fg_fence_local(); /* a signal handler sees a whole state */
	t->only = FG_ONLY_SEVERAL;
	fg_set_cs(t, held);
	fg_set_pending(t, address(l));
}

/* Announces that `l` is being taken, besides what is held.  Returns what was pending. */
static inline uint64_t announce(struct fg_lock *l, struct fg_self *t)
{
	uint32_t held = locks_held(t);
	uint64_t prev = 0;

	if (held) {
		prev = pending_of(t);
		announce_beside(l, t, held);
	} else {
		t->only = address(l);
		fg_set_cs(t, 0);
		fg_set_pending(t, address(l));
	}
	return prev;
}

/*
 * Taken here and not in the fast path: as likely as not somebody waits when it
 * is released, and "several" makes the release come here at once.
 */
static inline void acquired(struct fg_lock *l, struct fg_self *t, uint64_t prev)
{
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
	if (t->only == FG_ONLY_SEVERAL) {
		l->prev = prev;
		t->held++;
		return;
	}
	/* Nothing reads the `prev` of the first, and those who wait may have the line again. */
	t->held = 1;
	t->pending = address(l);
	fg_fence_local();
	t->only = FG_ONLY_SEVERAL;
}

/*
 * Of a thread that holds nothing: "several", with none held, keeps its next lock off the fast path.
 */
static inline void force_slow_path(struct fg_self *t)
{
	t->held = 0;
	t->pending = 0;
	fg_fence_local();
	t->only = FG_ONLY_SEVERAL;
}

static inline void not_acquired(struct fg_self *t, uint64_t prev)
{
	publish(t, t->only == FG_ONLY_SEVERAL ? t->held : 0, prev);
}

#endif
