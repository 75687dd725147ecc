/* SPDX-License-Identifier: MIT */
/*
 * Gates: the queue of those of this process that wait for an object whose own words have no room
 * for one, a spinlock or a semaphore.  Who has the gate is the one waiter that looks at the object
 * all the time.  A gate is a FlexGuard lock, and so are its order, its sleepers and its neighbours.
 * They are in a table, by the object's address.
 *
 * Nothing depends on them: whoever comes takes what is free, and a waiter whose gate does not move
 * goes around it (docs/design/spin.md).
 */
#ifndef FG_GATE_H
#define FG_GATE_H

#include <stdint.h>

#include "lock/lock.h"

enum fg_gate {
	FG_GATE_PASSED, /* the calling thread has it: _fg_gate_leave() */
	FG_GATE_AROUND, /* wait without it */
	FG_GATE_LOOK,	/* at the object; then pass again, with the same wait */
};

/* A wait at a gate, from the first _fg_gate_pass() to one that returns something else than LOOK. */
struct fg_gate_wait {
	struct fg_self *self;
	uint64_t patience_ns; /* until it is time to look; twice and four times that if it moves */
	bool is_event;	      /* it yields, never sleeps, and goes as soon as it should */
	/* of gate.c */
	bool looked;
	uint32_t owner, times, moved;
};

enum fg_gate _fg_gate_pass(const void *object, struct fg_gate_wait *w);
void _fg_gate_leave(const void *object);
void _fg_gates_after_fork(void); /* in the child, by its only thread */
/* The calling thread, which has a slot, ends: it has none any more, if it had one in a wait. */
void _fg_gates_thread_ends(const struct fg_self *t);

/* The lock that is the gate, and what its `tag` says while others wait for `object`. */
struct fg_lock *_fg_gate(const void *object);
uint32_t _fg_gate_tag(const void *object);

/*
 * The owner of the gate does not look at the object for a while, after others have taken it `lost`
 * times; until it may ask for it at most.
 */
void _fg_gate_back_off(uint32_t lost, uint64_t until_ns);

/*
 * A word for one thing that the waiters of `object` have to say, while it is set to
 * _fg_gate_noted(object), which is not 0.  A hint: another object may share it.
 */
uint32_t *_fg_gate_note(const void *object);
uint32_t _fg_gate_noted(const void *object);

#endif
