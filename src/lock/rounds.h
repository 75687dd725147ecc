/* SPDX-License-Identifier: MIT */
/*
 * Timed rounds: a section and what is between two.  Where a thread is back for
 * the lock a few dozen ns after it has released it, the cache lines that change
 * hands with the lock cost more than the sections.  A head that knows its own
 * rounds to be that short looks at the word rarely, and the owner takes the lock
 * many more times meanwhile.  One round in TIMED_EVERY that begins as the head
 * is timed; the fast paths know nothing of that.  Part of lock.c and native_wait.c.
 */
#ifndef FG_ROUNDS_H
#define FG_ROUNDS_H

#include "lock/lock.h"

#define SHORT_ROUND_NS	600u
#define SHORT_ROUNDS	2 /* of 3 */
#define TIMED_EVERY	16u

static inline bool rounds_are_short(const struct fg_self *t)
{
	return t->short_rounds >= SHORT_ROUNDS;
}

static inline uint32_t now_ns(void)
{
	return (uint32_t)fg_now_ns();
}

/* The head has got the lock, its only one. */
static inline void round_begins(struct fg_self *t)
{
	_Static_assert(TIMED_EVERY == 16, "fg_self.heads wraps there");
	if (t->heads++ || !fg_id_has_slot(t->id))
		return;
	fg_thread_mine(t)->got_ns = now_ns();
	t->timing = 1;
}

/* Of a thread that holds nothing: "several", with none held, keeps its next lock off the fast path. */
static inline void next_goes_slowly(struct fg_self *t)
{
	t->held = 0;
	t->pending = 0;
	fg_fence_local();
	t->only = FG_ONLY_SEVERAL;
}

/* It has released its last lock.  Its next lock has to come this way. */
static inline void round_releases(struct fg_self *t)
{
	if (fg_unlikely(t->timing))
		next_goes_slowly(t);
}

static inline void round_took(struct fg_self *t, uint32_t ns)
{
	if (ns > SHORT_ROUND_NS)
		t->short_rounds -= t->short_rounds > 0;
	else
		t->short_rounds += t->short_rounds < 3;
}

/* It takes a lock again. */
static inline void round_ends(struct fg_self *t)
{
	if (fg_likely(!t->timing) || t->only != FG_ONLY_SEVERAL || t->held)
		return;
	round_took(t, now_ns() - fg_thread_mine(t)->got_ns);
	t->timing = 0;
}

#endif
