/* SPDX-License-Identifier: MIT */
/*
 * Two sides that store first and then look at what the other has stored (Dekker's way of keeping
 * each other out) need a barrier in between, both.  Where one side is rare, it can make the barrier
 * for both: all threads of the process pass one, by membarrier(2), and the usual side only keeps
 * the compiler from changing the order (Dice, Huang, Yang, "Asymmetric Dekker Synchronization",
 * 2001).
 *
 * Where that call is missing, or may not be made any more, both sides have a barrier of their own,
 * as they have before the library is set up.
 */
#ifndef FG_ASYMMETRIC_H
#define FG_ASYMMETRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/atomic.h"

enum fg_asymmetric {
	FG_SYMMETRIC,	    /* each side for itself */
	FG_ASYMMETRIC,	    /* the rare one for both */
	FG_ASYMMETRIC_ENDS, /* for both; the usual one for itself as well, from now on */
};
extern uint32_t fg_asymmetric;

/* At the start of the process: a call is made. */
void fg_asymmetric_setup(void);
/* A filter comes, which might kill for the call: it is made for the last time. */
void fg_asymmetric_ends(void);
void fg_asymmetric_after_fork(void);

/*
 * Of the usual side, between its store and its load.  A thread that goes on after it without a
 * barrier has looked at fg_asymmetric before its load; so whoever found FG_SYMMETRIC after a store
 * of its own, and is not seen, had that store seen.
 */
static inline void fg_fence_light(void)
{
	fg_fence_local();
	if (fg_unlikely(fg_load_acquire(&fg_asymmetric) != FG_ASYMMETRIC))
		fg_fence_seq_cst();
}

/* Of the rare one.  `whose`: as for fg_call_begins(). */
void fg_fence_heavy(uint32_t whose);

/* The call alone, whatever the usual side does: false if not all threads have passed a barrier. */
bool fg_barrier_everywhere(uint32_t whose);

#endif
