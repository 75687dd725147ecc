/* SPDX-License-Identifier: MIT */
/*
 * The gate of a spinlock: the queue of those of this process that wait for it.  Its 4 bytes have no
 * room for one, so the gates are in a table, by the lock's address.  Who has the gate is the one
 * waiter that looks at the lock all the time.  A gate is a FlexGuard lock, and so are its order,
 * its sleepers and its neighbours.
 *
 * Nothing depends on it: whoever finds a free spinlock takes it, and a waiter whose gate does not
 * move goes around it (docs/design/spin.md).
 */
#ifndef FG_SPIN_GATE_H
#define FG_SPIN_GATE_H

#include <stdint.h>

#include "lock/lock.h"

enum fg_gate {
	FG_GATE_AROUND, /* wait without it */
	FG_GATE_PASSED, /* the calling thread has it: fg_spin_gate_leave() */
	FG_GATE_LOCKED, /* it has the spinlock, and not the gate */
};

enum fg_gate _fg_spin_gate_pass(int32_t *lock, struct fg_self *t);
void _fg_spin_gate_leave(const int32_t *lock);
void _fg_spin_gates_after_fork(void); /* in the child, by its only thread */

/*
 * The owner of the gate has been overtaken for long: it asks the next release for the lock, which
 * comes to _fg_spin_wake() since `_fg_spin_bucket.sleepers` is not 0, and there leaves it time.
 */
void _fg_spin_gate_ask(const int32_t *lock);
void _fg_spin_gate_asked_enough(const int32_t *lock);
/* After a release.  The lock itself may be gone. */
void _fg_spin_gate_after_release(const int32_t *lock);

/* For tests: the lock that is the gate, and what its `tag` says while others wait for `lock`. */
struct fg_lock *_fg_spin_gate(const int32_t *lock);
uint32_t _fg_spin_gate_tag(const int32_t *lock);

#endif
