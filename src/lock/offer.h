/* SPDX-License-Identifier: MIT */
/*
 * The hand-over by one line.  A release that makes the word free, and a waiter that takes it, move
 * the word's line twice, and all who come in between move it as well.  So the owner gives the lock
 * to a waiter where that one looks, in a line of its own, and touches neither the word nor the
 * queue's tail, as in an MCS lock (Mellor-Crummey, Scott, TOCS 1991).  In contrast to that, a
 * waiter may go at any time, and none that is off its CPU is given anything.  Two ways:
 *
 *   - A head, or the standby, offers to be given the lock (fg_thread.offer), and an owner that has
 *     promised to tell it when the lock is free gives it instead.
 *   - A head that was given the lock so keeps its place in the queue, and gives both, the lock and
 *     the head's role, to the node behind it (queue.h, KEPT).  So does that one.
 *
 *   offer          its thread
 *   0              has not offered anything
 *   lock | MADE    is the head of that lock's queue, or its standby
 *   lock | GIVEN   is the owner of that lock, and the word has the id of an earlier one
 *   lock | both    the same, and it is about to pass on the head's role
 *   lock | GIVEN | ENDS   the same, and its thread ends, and is about to settle the word
 *
 * In the last two who releases the lock in its place waits for the end of that.
 *
 * Its thread goes from 0 to MADE, back by compare-and-swap, and from GIVEN to 0; from GIVEN to both
 * and back by compare-and-swap; at its end from either to GIVEN | ENDS, and its node stays in
 * fg_thread.kept until the role has gone.  The owner of the lock goes from MADE to GIVEN by
 * compare-and-swap.  The address makes that exact however late it comes: whoever is the owner may
 * give the lock to anybody who waits for it.  Who releases it in the owner's place goes from GIVEN
 * to 0 by compare-and-swap, and from both if it has waited for long enough.
 *
 * The word goes on saying "held", but not by whom, until an owner settles it.  So these are locks
 * whose owner nobody asks the word for, but as a hint.  Why all that is safe: docs/design/lock.md,
 * "The hand-over by one line"; the model: test/verify/offer.pml.
 */
#ifndef FG_OFFER_H
#define FG_OFFER_H

#include "lock/held.h"

/* By a thread that waits for this lock.  False: it has been given another one. */
bool _fg_offer_make(const struct fg_lock *l, struct fg_self *t);

/* No longer: false, it has the lock. */
bool _fg_offer_withdraw(const struct fg_lock *l, struct fg_self *t);

/* To be given some lock; where it begins to wait, by a frame below. */
static inline bool _fg_offer_is_made(const struct fg_self *t)
{
	return (fg_load_relaxed(&fg_thread_mine(t)->offer) & FG_OFFER_BITS) == FG_OFFER_MADE;
}

/*
 * The calling thread is about to wait, on top of a wait that a signal handler has interrupted: that
 * one cannot come for what it would be given, and it may be this very lock.
 */
void _fg_offer_none_below(struct fg_self *t);

/* By one that has just been given it with the role of the head, which it keeps in its node `n`. */
void _fg_offer_keep(const struct fg_lock *l, struct fg_self *t, uint32_t n);

/* By the owner.  True: it is another thread's now. */
bool _fg_offer_give(struct fg_lock *l, struct fg_self *t);

/* By an owner that was given it: from now on the word has its id.  Returns what the word was. */
uint32_t _fg_offer_settle(struct fg_lock *l, struct fg_self *t);

/* By an owner that was given it, and gives it to nobody: as if it had taken it by the word. */
void _fg_offer_end(struct fg_lock *l, struct fg_self *t);

/* The calling thread keeps the role of the head no longer, whatever lock it was of. */
void _fg_offer_put_away(struct fg_self *t);

/* It ends, perhaps with a lock that it was given, which it or another one may still release. */
void _fg_offer_thread_ends(struct fg_self *t);

/*
 * In the child of fork, by its only thread, before fg_threads_after_fork(): the word of a lock that
 * it was given has its id.  True: that is its only lock, which it has by the word from now on.
 */
bool _fg_offer_after_fork(void);

/*
 * The lock is to be released, by another thread than its owner.  Returns the id of the thread that
 * it was given to, whose it is no longer; 0: nobody's.
 */
uint32_t _fg_offer_take_back(struct fg_lock *l, struct fg_self *t);

#endif
