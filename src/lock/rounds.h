/* SPDX-License-Identifier: MIT */
/*
 * Timed rounds: a section, and what is between its end and the next one of the same lock.  Where a
 * thread is back for the lock within a few journeys of a cache line, the lines that change
 * hands with the lock cost more than the sections.  A head that knows its own rounds to be that
 * short looks at the word rarely, and the owner takes the lock many more times meanwhile.  One
 * round in 16 that begins as the head is timed; the fast paths know nothing of that.  For lock.c
 * and native_wait.c.
 */
#ifndef FG_ROUNDS_H
#define FG_ROUNDS_H

#include "lock/held.h"

#define SHORT_ROUNDS	  2u /* of 3 */
#define SHORT_ROUNDS_MOST 3u

static inline bool rounds_are_short(const struct fg_self *t)
{
	return t->short_rounds >= SHORT_ROUNDS;
}

/* Low bits: in a millisecond's distance a round looks short, now and then. */
static inline uint16_t round_clock(uint64_t now)
{
	return (uint16_t)(now / FG_ROUND_UNIT_NS);
}

static inline uint32_t round_time(uint16_t since, uint64_t now)
{
	return (uint16_t)(round_clock(now) - since) * FG_ROUND_UNIT_NS;
}

/*
 * While others sleep for a lock its word is never 0, and each lock and each release goes a long
 * way.  That is most of what a short round takes, so there a release that finds sleepers wakes one
 * each time, and threads come and go by time slices; as long as few sleep.
 */
bool _fg_rounds_wake_each_time(const struct fg_self *t);
/* This thread has been woken: `now`, by the clock. */
void _fg_rounds_woken(const struct fg_self *t, uint64_t now);

#define FG_PARTS 16 /* of a ns, in averages, so that they move at all */

/* Moves the average by an eighth of the way; 0: there is none yet.  Not varied. */
static inline void fg_average(uint32_t *average, uint32_t now)
{
	uint32_t before = fg_load_relaxed(average);

	if (before)
		now = before - before / 8 + now / 8;
	fg_store_relaxed(average, now ? now : 1);
}

/* Of one journey: what takes longer is an interrupt, or a slow clock.  Not varied. */
#define FG_JOURNEY_MOST_NS 300

/* A cache line's journey from the thread with this id, which has taken a lock, to this one. */
void _fg_time_journey(const struct fg_self *t, uint32_t owner);

/* How long so many take, lately, on average; 0: not known. */
uint32_t _fg_journeys_ns(uint32_t number);

/*
 * What the rounds of threads that share their CPUs with other processes take, lately, on average;
 * 0: not known.
 */
uint32_t _fg_rounds_ns(void);

/* Of one that is timed: what it took from lock to release, and from there to the next lock. */
void _fg_section_took(const struct fg_self *t, uint32_t ns);
void _fg_was_away(const struct fg_self *t, uint32_t ns);

/*
 * The head has left this lock alone, and it lies free: nobody comes back for it.  Then its own
 * latest round was not short, either.
 */
bool _fg_rounds_are_over(const struct fg_lock *l, struct fg_self *t);

/* The head has got the lock, and it is the turn of a round to be timed. */
void _fg_round_begins(const struct fg_lock *l, struct fg_self *t);

/* It takes a lock again. */
void _fg_round_ends(const struct fg_lock *l, struct fg_self *t);

/* It takes another lock in the section. */
void _fg_round_has_another(struct fg_self *t);

/* It begins to hand this one over, which is a part of its release. */
void _fg_round_hands_over(const struct fg_lock *l, struct fg_self *t);

/* It has released this one, while a round is timed. */
void _fg_round_releases(const struct fg_lock *l, struct fg_self *t);

/* A round of a lock of glibc's, whose release is glibc's, has taken so long from lock to lock. */
void _fg_native_round_took(struct fg_self *t, uint32_t ns);

static inline void round_hands_over(const struct fg_lock *l, struct fg_self *t)
{
	if (fg_unlikely(t->round_is_timed))
		_fg_round_hands_over(l, t);
}

static inline void round_releases(const struct fg_lock *l, struct fg_self *t)
{
	if (fg_unlikely(t->round_is_timed))
		_fg_round_releases(l, t);
}

static inline void round_ends(const struct fg_lock *l, struct fg_self *t)
{
	if (fg_likely(!t->round_is_timed))
		return;
	if (fg_thread_mine(t)->round_is_released)
		_fg_round_ends(l, t);
	else if (!locks_announced(t)) /* released unseen */
		t->round_is_timed = 0;
	else if (pending_of(t) && pending_of(t) != address(l))
		_fg_round_has_another(t);
}

#endif
