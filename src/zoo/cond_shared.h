/* SPDX-License-Identifier: MIT */
/*
 * A condition variable for several processes that run the same mutexes of ours: a
 * count of signals that waiters sleep on (Drepper, "Futexes Are Tricky", 2011; the
 * BPF Hybrid Lock has one with tickets, zoo/ticketcond.h).  No lists, whose nodes
 * would be in somebody else's memory, and no turns.
 *
 * A signal counts, then wakes one sleeper.  In between another may have seen the
 * new count and gone to sleep; if it is the one that is woken, the waiter that
 * was meant sleeps on.  So a thread that is woken while the count is what it saw before
 * wakes one more, and returns: a wake-up too many, which POSIX permits, and none too
 * few (test/verify/condshared.pml).
 *
 * Two to the 32 signals between a look at the count and going to sleep would be missed.
 */
#ifndef FG_COND_SHARED_H
#define FG_COND_SHARED_H

#include "lock/cond.h"

/*
 * In place of the first words of glibc's; flags as in fg_cond, set by glibc's own initialisation.
 */
struct fg_cond_shared {
	uint32_t signals;
	uint32_t waiters; /* that have not returned: destruction waits for them */
};

/* As those of cond.h, in every process that has it mapped. */
int _fg_cond_shared_wait(struct fg_cond_shared *c, const struct fg_cond_mutex *m,
			 const struct fg_deadline *deadline);
void _fg_cond_shared_wake(struct fg_cond_shared *c, bool all);
void _fg_cond_shared_destroy(struct fg_cond_shared *c);

#endif
