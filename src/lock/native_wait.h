/* SPDX-License-Identifier: MIT */
/*
 * Spinning in front of a lock of another implementation (glibc's robust
 * and process-shared mutexes), before its own blocking call.  Such a lock is
 * only looked at: nothing of ours is written into it, because other processes
 * that use it need not run FlexGuard.
 *
 * Its owner may be a thread of any process.  One of ours is known by its tid,
 * and fg_decide() sees whether it runs.  Anyhow the spin is for a limited
 * time, and its history (decide.h) stands in a table of this process.
 */
#ifndef FG_NATIVE_WAIT_H
#define FG_NATIVE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread.h"
#include "sys/futex.h"

/* What can be seen of it. */
struct fg_native_view {
	const uint32_t *word;
	uint32_t held;	       /* bits of *word that are clear when it can be had */
	const uint32_t *owner; /* tid; may be old, or 0 */
	uint32_t tid_bits;     /* of *owner */
};

/*
 * True: it can be had, for a moment at least.  False: it is time for the native
 * call, since fg_decide() says so, the deadline has passed, or this thread has
 * it already (what follows from that only the other implementation knows).
 */
bool _fg_native_wait(struct fg_self *self, const struct fg_native_view *lock,
		     const struct fg_deadline *deadline);

/* A thread that has waited so takes such a lock again: how long has it been away (rounds.h)? */
void _fg_native_round_ends(struct fg_self *self);

static inline void _fg_native_round(void)
{
	struct fg_self *t = &fg_self_tls;

	if (fg_id_has_slot(t->id) && fg_unlikely(fg_thread_mine(t)->native_since))
		_fg_native_round_ends(t);
}

#endif
