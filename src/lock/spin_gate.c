/* SPDX-License-Identifier: MIT */
/*
 * Waiting for one's turn to look at a spinlock (spin_gate.h).  That all but one wait for something
 * else than the lock itself: Mellor-Crummey, Scott, TOCS 1991; that the one takes it by a
 * compare-and-swap, beside those that have just come: the mutex here, and qspinlock
 * (kernel/locking/qspinlock.c), which has both in 4 bytes, but may not change what a word means to
 * other processes.
 */
#include "lock/spin_gate.h"

#include "arch/arch.h"
#include "lock/spin.h"
#include "runtime/decide.h"
#include "sys/futex.h"

/*
 * How long a waiter leaves the lock to the owner of the gate before it looks for itself: as the
 * first periodic check of a lock's sleeper.  It loses its place by that, so where the gate has
 * moved, and many wait for long, it is doubled, so often.  Not varied.
 */
#define PATIENCE_NS	 8000000u
#define PATIENCE_DOUBLED 2u

/*
 * Where the monitor says that the owner of the gate is on a CPU, its lock is busy, or it is in a
 * signal handler: it is waited for so many times as long.  Not varied.
 */
#define PATIENCE_RUNNING 8u

/* Looks of one that has just come, as a mutex's (lock_spin.c). */
#define LOOKS_ALONE 16u

/*
 * Who releases a lock that the owner of the gate has asked for leaves it alone for so long, or
 * until that one has it: some journeys of a line.  Not varied.
 */
#define LEAVE_PAUSES 64u

#define ASKS 0x80000000u /* so that no lock's is 0; half of 16 GB is enough to tell locks apart */

static struct gate {
	struct fg_lock lock; /* `tag`: which spinlock its owner waits for */
	uint32_t asks;	     /* the same, while the owner asks for it; 0: it does not */
} __attribute__((aligned(FG_CACHE_LINE))) gates[FG_SPIN_BUCKETS];

static uint32_t anybody_waited; /* ever, as in spin.c */

static struct gate *gate_of(const int32_t *lock)
{
	return &gates[_fg_spin_hash(lock) >> 24];
}

struct fg_lock *_fg_spin_gate(const int32_t *lock)
{
	return &gate_of(lock)->lock;
}

uint32_t _fg_spin_gate_tag(const int32_t *lock)
{
	return (uint32_t)((uintptr_t)lock >> 2);
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

/* Where nobody is at the gate: two threads need none. */
static bool look_alone(int32_t *lock, struct fg_self *t, const struct fg_lock *gate)
{
	if (!fg_policy_spins())
		return false;
	for (uint32_t n = 0; n < LOOKS_ALONE && !fg_load_relaxed(&gate->word); n++) {
		if (fg_load_relaxed(lock) == FG_SPIN_FREE && _fg_spin_trylock(lock, t))
			return true;
		fg_pause();
	}
	return false;
}

enum fg_gate _fg_spin_gate_pass(int32_t *lock, struct fg_self *t)
{
	struct fg_lock *gate = _fg_spin_gate(lock);
	uint32_t tag = _fg_spin_gate_tag(lock), before = 0, times = 0, moved = 0;

	if (look_alone(lock, t, gate))
		return FG_GATE_LOCKED;
	if (!fg_load_relaxed(&anybody_waited))
		fg_store_relaxed(&anybody_waited, 1);
	for (;;) {
		uint32_t owner = owner_of(gate);
		struct fg_deadline end;

		if (!(fg_load_relaxed(&gate->word) & FG_WORD_TAKEN) && _fg_trylock(gate))
			break;
		/* Of another lock; or of this thread, which a signal handler has interrupted. */
		if (fg_load_relaxed(&gate->tag) != tag || owner == t->id)
			return FG_GATE_AROUND;
		fg_deadline_in(&end, PATIENCE_NS << moved);
		end.unlikely = true;
		if (!_fg_lock_slow(gate, &end))
			break;
#ifdef FG_BROKEN_GATE /* a test proves that the tests notice */
		continue;
#endif
		if (fg_load_relaxed(lock) == FG_SPIN_FREE && _fg_spin_trylock(lock, t))
			return FG_GATE_LOCKED;
		times = owner == before ? times + 1 : 1;
		before = owner;
		if (owner != owner_of(gate))
			moved += moved < PATIENCE_DOUBLED;
		else if (does_not_move(owner, times))
			return FG_GATE_AROUND;
	}
	if (fg_load_relaxed(&gate->tag) != tag)
		fg_store_relaxed(&gate->tag, tag);
	return FG_GATE_PASSED;
}

void _fg_spin_gate_leave(const int32_t *lock)
{
	_fg_unlock(_fg_spin_gate(lock));
}

void _fg_spin_gate_ask(const int32_t *lock)
{
	fg_store_relaxed(&gate_of(lock)->asks, _fg_spin_gate_tag(lock) | ASKS);
}

void _fg_spin_gate_asked_enough(const int32_t *lock)
{
	fg_store_relaxed(&gate_of(lock)->asks, 0);
}

void _fg_spin_gate_after_release(const int32_t *lock)
{
	uint32_t *asks = &gate_of(lock)->asks, mine = _fg_spin_gate_tag(lock) | ASKS;

	for (uint32_t n = 0; fg_load_relaxed(asks) == mine; n++) {
		if (n == LEAVE_PAUSES) { /* it is off its CPU, or too far away */
			fg_store_relaxed(asks, 0);
			return;
		}
		fg_pause();
	}
}

/*
 * Whoever has a gate, or sleeps for it, is not in this process, but for its only thread, which a
 * signal handler may have interrupted there.
 */
void _fg_spin_gates_after_fork(void)
{
	uint32_t i, id = fg_self_tls.id;

	if (!anybody_waited)
		return;
	for (i = 0; i < FG_SPIN_BUCKETS; i++) {
		struct fg_lock *gate = &gates[i].lock;

		gates[i].asks = gate->tail = 0;
		gate->word = id && (gate->word & FG_WORD_ID) == id ? id : 0;
	}
}
