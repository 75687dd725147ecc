/* SPDX-License-Identifier: MIT */
/*
 * One acquisition on its way through the slow path of the FlexGuard lock: what its spinning
 * (lock_spin.c) and its sleeping (lock_wait.c) share.
 */
#ifndef FG_ATTEMPT_H
#define FG_ATTEMPT_H

#include "lock/lock_paths.h"
#include "runtime/decide.h"

/* GIVEN, while it spins only: acquired, but not by the word (offer.h). */
enum outcome { ACQUIRED, UNDECIDED, SLEEP_AGAIN, TIMED_OUT, GIVEN };

struct attempt {
	struct fg_wait wait;
	const struct fg_deadline *deadline;
	/*
	 * SPINNER or DESIGNATED: the bit of the word that this thread has set and must not leave
	 * behind.
	 */
	uint32_t obligation;
	uint32_t taken; /* the word, right before this thread took it */
	uint32_t designated_ns;
	uint64_t check_ns;
	uint32_t short_sleeps; /* since it was awake last */
	uint32_t no_room;      /* checks that found no CPU to spare */
	uint32_t same;	       /* checks in a row that found the same owner */
	uint32_t seen;	       /* owner at the last check */
	bool may_offer;	       /* the lock is one whose owner nobody asks the word for (offer.h) */
	bool may_be_designated;
	bool makes_room; /* goes on sleeping though the lock may be free: others need the CPU */
	bool slept;
	uint8_t rows; /* how often in a row it has backed off in place of a sleep */
	bool in_vain; /* woken by a release or by its time limit, and the lock was taken again */
};

/*
 * Takes the word, seen as `*w`, if it is free, without our obligation; HANDOFF goes as well, we
 * have waited.
 */
static inline bool take_read(struct fg_lock *l, struct fg_self *t, struct attempt *a, uint32_t *w,
			     uint32_t drop, uint32_t set)
{
	if (!take_seen(l, t, w, drop | a->obligation | FG_WORD_HANDOFF, set))
		return false;
	a->obligation = 0;
	a->taken = *w;
	return true;
}

static inline bool take_over_seen(struct fg_lock *l, struct fg_self *t, struct attempt *a,
				  uint32_t word)
{
	return take_read(l, t, a, &word, 0, 0);
}

static inline bool take_over(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	return take_over_seen(l, t, a, fg_load_relaxed(&l->word));
}

/*
 * After a sleep its turn begins anew.  One that keeps the lock busy was not away from it meanwhile;
 * but it does not, if it has released it but once since its sleep before, and to wake up is no
 * release: the others would be left to the designated waiter, which looks after some ms.
 */
static inline void has_slept(struct fg_self *t, uint64_t now)
{
	t->turn_began_us = turn_clock(now);
	if (t->busy_releases == 1)
		t->keeps_busy = 0;
	t->busy_releases = 0;
	if (t->keeps_busy)
		t->released_us = t->turn_began_us;
}

/* For so long, for a time only. */
static inline void slept_by_itself(struct fg_self *t, struct attempt *a, uint64_t ns)
{
	a->slept = true;
	has_slept(t, fg_now_ns());
	fg_count(t, FG_STAT_PARKS, 1);
	fg_count(t, FG_STAT_BLOCKED_NS, ns);
}

/*
 * Some looks of one that has just come, where nobody is in the queue.  True with the lock.  *word:
 * as it was seen last, or right before it was taken.
 */
bool _fg_lock_look_alone(struct fg_lock *l, struct fg_self *t, uint32_t *word,
			 const struct fg_deadline *deadline);

/*
 * Before the sleep that a critical thread off its CPU is the reason for.  If that is not the owner,
 * which is back for the lock at once, it keeps away for as long as a head does; then it may find
 * the lock free all the same.  True with the lock.
 */
bool _fg_lock_keep_away(struct fg_lock *l, struct fg_self *t, struct attempt *a);

/*
 * Spins in the queue while fg_decide() says so.  UNDECIDED: it says "sleep", or there is no node
 * for this thread.
 */
enum outcome _fg_lock_spin(struct fg_lock *l, struct fg_self *t, struct attempt *a);

#endif
