/* SPDX-License-Identifier: MIT */
/*
 * Objects that have a copy of the fork epoch: what threads of the parent have left in
 * them means nothing in the child, and is thrown away by whoever comes first.
 *
 * One lock for all of them keeps the others out meanwhile, so they sleep if that thread is
 * kept off its CPU.  The epoch is stored last: a child that was copied in the middle finds
 * the old one, and does all of it again.  The lock itself is new in a child before there is
 * a second thread.
 */
#ifndef FG_EPOCH_H
#define FG_EPOCH_H

#include "runtime/thread.h"

/* Calls empty(object) unless `*epoch`, the object's copy, is that of this process by then. */
void _fg_enter_epoch(uint32_t *epoch, void (*empty)(void *object), void *object);

/*
 * The lock, for objects whose copy is of another form.  What the first returns the second is given.
 */
bool _fg_epoch_lock(void);
void _fg_epoch_unlock(bool taken);

/* in the child, by its only thread; after fg_threads_after_fork() */
void _fg_epoch_after_fork(void);

#endif
