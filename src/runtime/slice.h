/* SPDX-License-Identifier: MIT */
/*
 * Time-slice extension (sys/slice.h) for owners that others wait for: a thread that has had to wait
 * for a lock, or finds that others sleep for it, asks the kernel to leave it on its CPU for some us
 * more if its slice ends in the section, and gives the CPU back when it has released its last lock.
 * The idea, for a spinlock: Edler, Lipkis, Schonberg, "Process Management for Highly Parallel UNIX
 * Systems", USENIX Workshop on UNIX and Supercomputers 1988; with this lock: the FlexGuard paper,
 * 5.1.
 *
 * Other owners ask for nothing, so that the fast paths know nothing of this: whoever asks marks its
 * locks as `unordered`, which leads each release to the long way.
 */
#ifndef FG_RUNTIME_SLICE_H
#define FG_RUNTIME_SLICE_H

#include "runtime/policy.h"
#include "runtime/thread.h"

enum fg_slice {
	FG_SLICE_UNTRIED, /* the kernel wants to be asked once by each thread */
	FG_SLICE_REFUSED,
	FG_SLICE_QUIET,
	FG_SLICE_ASKED, /* for the locks that it has */
};

static inline bool fg_slice_may_ask(void)
{
	return fg_unlikely(fg_load_relaxed(&fg_slices) != FG_SLICES_NONE);
}

/* It has got a lock, and others wait for that, or are likely to. */
void fg_slice_begin(struct fg_self *t);
void _fg_slice_end(struct fg_self *t);

static inline bool fg_slice_is_asked(const struct fg_self *t)
{
	return fg_unlikely(fg_load_relaxed(&fg_slices) == FG_SLICES_OFFERED) && fg_has_slot(t) &&
	       fg_thread_mine(t)->slice == FG_SLICE_ASKED;
}

/* It has released its last lock, the long way. */
static inline void fg_slice_end(struct fg_self *t)
{
	if (fg_slice_is_asked(t))
		_fg_slice_end(t);
}

#endif
