/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a spinlock: awake while fg_decide() says so, then asleep, so that
 * with more threads than CPUs the owner gets one.
 *
 * Sleeping without a bit in the lock.  The release is a plain store to the lock,
 * then a load of the sleepers' count; nothing but the CPU's store buffer orders
 * the two, which may hold the store back.  The sleeper counts itself, then makes
 * all CPUs that run this process pass a barrier (membarrier(2)), then looks at
 * the lock: either it sees it free, or the release sees the count (Dice, Huang,
 * Yang, "Asymmetric Dekker Synchronization", 2001).  Where the kernel lacks
 * the call, where it may not be made (sys/filter.h), and for releases by other
 * processes, every sleep has a time limit.
 */
#include "lock/spin.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "lock/decide.h"
#include "sys/count.h"
#include "sys/filter.h"

struct fg_spin_bucket fg_spin_buckets[FG_SPIN_BUCKETS];

/* Time limits of a sleep: the first, doubled up to the second. */
#define SLEEP_NS     1000000u
#define SLEEP_MAX_NS 16000000u

/* Locks of one bucket are told apart by a bit of the futex call, mostly. */
static uint32_t channel(const int32_t *lock)
{
	return 1u << (fg_spin_hash(lock) >> 16) % 32;
}

void fg_spin_wake(int32_t *lock)
{
	struct fg_spin_bucket *b = fg_spin_bucket(lock);

	if (fg_load_relaxed(&b->spinners))
		return;
	/* Release: who sees the count sees the lock free (acquire in sleep_on). */
	fg_add_release(&b->wakes, 1);
	fg_futex_wake(&b->wakes, 1, channel(lock));
}

static void barrier_everywhere(uint32_t id)
{
	long r;

	if (!fg_call_begins(id))
		return;
	r = fg_syscall6(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);

	/* Not registered: this process has not been here yet, or is the child of a fork. */
	if (r == -EPERM && !fg_syscall6(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0))
		fg_syscall6(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
	fg_call_ends(id);
}

static uint32_t owner_of(int32_t value)
{
	uint32_t index = (uint32_t)value >> 12 & (FG_MAX_THREADS - 1);

	return value < FG_SPIN_FREE ? fg_load_relaxed(&fg_slot_look(index)->owner_id) : 0;
}

/* True if the lock became free meanwhile. */
static bool spin(int32_t *lock, struct fg_self *t)
{
	struct fg_spin_bucket *b = fg_spin_bucket(lock);
	struct fg_wait w = { .self = t };
	bool is_free, counted = false;

	for (;;) {
		int32_t value = fg_load_relaxed(lock);

		is_free = value == FG_SPIN_FREE;
		if (is_free)
			break;
		w.owner = owner_of(value);
		if (fg_decide(&w) == FG_BLOCK)
			break;
		if (!counted && fg_unlikely(fg_load_relaxed(&b->sleepers))) {
			fg_add_relaxed(&b->spinners, 1);
			counted = true;
		}
		fg_pause();
	}
	if (counted)
		fg_add_relaxed(&b->spinners, -1u);
	return is_free;
}

static void sleep_on(int32_t *lock, struct fg_self *t, uint64_t limit_ns)
{
	struct fg_spin_bucket *b = fg_spin_bucket(lock);
	struct fg_deadline limit;
	uint32_t wakes;

	fg_add_relaxed(&b->sleepers, 1);
	barrier_everywhere(t->id);
	wakes = fg_load_acquire(&b->wakes);
	if (fg_load_relaxed(lock) != FG_SPIN_FREE) {
		fg_deadline_in(&limit, limit_ns);
		fg_count(t, FG_STAT_PARKS, 1);
		fg_futex_wait(&b->wakes, wakes, channel(lock), &limit);
	}
	fg_add_relaxed(&b->sleepers, -1u);
}

static void take_slowly(int32_t *lock, struct fg_self *t)
{
	uint64_t limit_ns = SLEEP_NS;

	fg_count(t, FG_STAT_CONTENDED, 1);
	for (;;) {
		if (spin(lock, t)) {
			if (fg_spin_try(lock, t))
				return;
			continue;
		}
		sleep_on(lock, t, limit_ns);
		if (limit_ns < SLEEP_MAX_NS)
			limit_ns *= 2;
	}
}

__attribute__((noinline)) void fg_spin_lock_slowly(int32_t *lock, struct fg_self *t, const void *caller)
{
	bool traced = fg_is_traced();
	struct fg_traced trace;

	if (traced)
		trace = fg_trace_begins();
	take_slowly(lock, t);
	if (traced)
		fg_trace_ends(&trace, lock, caller);
}
