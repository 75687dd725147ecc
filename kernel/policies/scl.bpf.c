// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * scl: who has held the lock for longer than its part of the time waits until the others may have
 * caught up, even if it is free (scl.bpf.h).  For mutexes, whose waiters sleep meanwhile; for
 * spinlocks, too, and with numa it is the paper's NUMA-SCL (numa+scl).  One wait is 10 ms at most,
 * unless max_wait_us says otherwise: what is left of a debt is waited for the next time.
 *
 * Proved by: Jain's index of hold_ns by CPU, with a thread on each, and the violations, both
 * against those of `-o throttle=no`, which only counts.
 */
#include "scl.bpf.h"

const volatile bool throttle = true;

SYNCORD_COUNTERS(u64 acquisitions; u64 violations; u64 waits; u64 hold_ns; u64 max_hold_ns;)

HOOK(lock_enable_fastpath)
bool BPF_PROG(scl_lock_enable_fastpath, struct syncord_lock *lock, u32 how)
{
	return !throttle || !beyond(lock, thread_of(how));
}

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(scl_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	u64 debt = throttle && !(node->how & SYNCORD_READ) ? beyond(lock, node->pid) : 0;

	if (debt)
		SYNCORD_COUNT(lock, waits);
	return debt;
}

HOOK(lock_acquired)
void BPF_PROG(scl_lock_acquired, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);

	if (n) {
		n->acquisitions++;
		n->violations += beyond(lock, thread_of(how)) != 0;
	}
	account_begin(lock, thread_of(how));
}

HOOK(lock_to_release)
void BPF_PROG(scl_lock_to_release, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);
	u64 held = account_end(lock, thread_of(how));

	if (n) {
		n->hold_ns += held;
		at_most(&n->max_hold_ns, held);
	}
}

SYNCORD_POLICY
struct syncord_ops scl = {
    .lock_enable_fastpath = (void *)scl_lock_enable_fastpath,
    .lock_to_enter_slowpath = (void *)scl_lock_to_enter_slowpath,
    .lock_acquired = (void *)scl_lock_acquired,
    .lock_to_release = (void *)scl_lock_to_release,
    .name = "scl",
};
