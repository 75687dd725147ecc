/* SPDX-License-Identifier: MIT */
/*
 * Waiting for one's turn to look at an object (gate.h).  That all but one wait for something else
 * than the lock itself: Mellor-Crummey, Scott, TOCS 1991; that the one takes it by a
 * compare-and-swap, beside those that have just come: the mutex here, and qspinlock
 * (kernel/locking/qspinlock.c), which has both in 4 bytes, but may not change what a word means to
 * other processes.
 */
#include "lock/gate.h"

#include "arch/arch.h"
#include "lock/held.h"
#include "runtime/decide.h"
#include "sys/futex.h"

/* Not varied. */
#define GATES 256u

/*
 * Who looks for itself loses its place, so where the gate has moved, and many wait for long, it
 * waits for twice as long the next time, so often.  Not varied.
 */
#define PATIENCE_DOUBLED 2u

/*
 * Where the monitor says that the owner of the gate is on a CPU, its object is busy, or it is in a
 * signal handler: it is waited for so many times as long.  Not varied.
 */
#define PATIENCE_RUNNING 8u

/*
 * Each look takes the line from whoever is back at once; so there are pauses before it, so many for
 * each time that the object was lost, and if that is often, until the owner of the gate asks for it
 * (backoff: Anderson, TPDS 1990).  104 threads with empty sections make 5,300 a ms of a semaphore
 * without, with 4 for each 28,500, with 16 35,400 (simulated).
 */
#define BACKOFF	    16u
#define LOST_MANY   4u
#define BACKOFF_MAX 1024u

#define TAG_PAUSES 16u /* not varied */

#define NOTED 0x80000000u /* so that none is 0; half of 16 GB is enough to tell objects apart */

static struct gate {
	struct fg_lock lock; /* `tag`: which object its owner waits for */
	uint32_t note;
} __attribute__((aligned(FG_CACHE_LINE))) gates[GATES];

static uint32_t anybody_waited; /* ever: what a child of fork() inherits */

static struct gate *gate_of(const void *object)
{
	return &gates[(uint32_t)((uintptr_t)object >> 2) * 0x9e3779b1u >> 24];
}

struct fg_lock *_fg_gate(const void *object)
{
	return &gate_of(object)->lock;
}

uint32_t _fg_gate_tag(const void *object)
{
	return (uint32_t)((uintptr_t)object >> 2);
}

uint32_t *_fg_gate_note(const void *object)
{
	return &gate_of(object)->note;
}

uint32_t _fg_gate_noted(const void *object)
{
	return _fg_gate_tag(object) | NOTED;
}

void _fg_gate_back_off(uint32_t lost, uint64_t until_ns)
{
	uint32_t n, most = lost < LOST_MANY ? lost * BACKOFF : LOST_MANY * BACKOFF;

	for (n = 0; n < most; n++)
		fg_pause();
	/* A clock that stands still (a filter) ends it, too. */
	for (; lost >= LOST_MANY && n < BACKOFF_MAX && fg_now_ns() < until_ns; n++)
		fg_pause();
}

static uint32_t owner_of(const struct fg_lock *gate)
{
	return fg_load_relaxed(&gate->word) & FG_WORD_ID;
}

/* Of another's gate, whose owner stood there when this thread began to wait, `times` ago. */
static bool does_not_move(uint32_t owner, uint32_t times)
{
	return times >= PATIENCE_RUNNING || !fg_policy_has_monitor() || !fg_is_watched(owner) ||
	       fg_is_owner_off(owner);
}

/* The wait goes on after a look; false: around the gate. */
static bool goes_on(const struct fg_lock *gate, struct fg_gate_wait *w)
{
	if (w->owner == owner_of(gate))
		return !does_not_move(w->owner, w->times);
	w->moved += w->moved < PATIENCE_DOUBLED;
	return true;
}

/* Whoever has just taken it writes its tag next. */
static bool is_for(const struct fg_lock *gate, uint32_t tag)
{
	for (uint32_t n = 0; n < TAG_PAUSES && fg_load_relaxed(&gate->tag) != tag; n++)
		fg_pause();
	return fg_load_relaxed(&gate->tag) == tag;
}

/* True with the gate. */
static bool wait_for(struct fg_lock *gate, const struct fg_gate_wait *w)
{
	struct fg_deadline end;

#ifdef FG_BROKEN_GATE /* a test proves that the tests notice */
	return !_fg_lock_slow(gate, NULL);
#endif
	fg_deadline_in(&end, w->patience_ns << w->moved);
	end.unlikely = true;
	end.is_event = w->is_event;
	return !_fg_lock_slow(gate, &end);
}

enum fg_gate _fg_gate_pass(const void *object, struct fg_gate_wait *w)
{
	struct fg_lock *gate = _fg_gate(object);
	uint32_t tag = _fg_gate_tag(object), owner;

	if (!fg_load_relaxed(&anybody_waited))
		fg_store_relaxed(&anybody_waited, 1);
	if (w->looked && !goes_on(gate, w))
		return FG_GATE_AROUND;
	owner = owner_of(gate);
	if ((fg_load_relaxed(&gate->word) & FG_WORD_TAKEN) || !_fg_trylock(gate)) {
		/* Of another object; or of this thread, which a signal handler has interrupted. */
		if (!is_for(gate, tag) || owner == w->self->id)
			return FG_GATE_AROUND;
		if (!wait_for(gate, w)) {
			w->times = w->looked && owner == w->owner ? w->times + 1 : 1;
			w->owner = owner;
			w->looked = true;
			return FG_GATE_LOOK;
		}
	}
	if (fg_load_relaxed(&gate->tag) != tag)
		fg_store_relaxed(&gate->tag, tag);
	return FG_GATE_PASSED;
}

void _fg_gate_leave(const void *object)
{
	_fg_unlock(_fg_gate(object));
}

/* Its wait has been left: cancelled asynchronously, say. */
void _fg_gates_thread_ends(const struct fg_self *t)
{
	if (!fg_load_relaxed(&anybody_waited) || !locks_announced(t))
		return;
	for (uint32_t i = 0; i < GATES; i++)
		if (owner_of(&gates[i].lock) == t->id)
			_fg_unlock(&gates[i].lock);
}

/*
 * Whoever has a gate, or sleeps for it, is not in this process, but for its only thread, which a
 * signal handler may have interrupted there.
 */
void _fg_gates_after_fork(void)
{
	uint32_t i, id = fg_self_tls.id;

	if (!anybody_waited)
		return;
	for (i = 0; i < GATES; i++) {
		struct fg_lock *gate = &gates[i].lock;

		gates[i].note = gate->tail = 0;
		gate->word = id && (gate->word & FG_WORD_ID) == id ? id : 0;
	}
}
