// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * scl-reorder: waiters that have held the lock for less time than the head of its queue come next.
 * Nobody waits who finds it free, and nobody can come next who is not in the queue: what the paper
 * has beside scl as the worse way (its Table 3).
 *
 * Proved by: violations, sections of those who have had more than their part, of acquisitions;
 * `-o reorder=no` only counts.
 */
#include "scl.bpf.h"

const volatile bool reorder = true;
const volatile u32 flush = 65536;

SYNCORD_COUNTERS(u64 acquisitions; u64 violations; u64 chosen; u64 hold_ns; u64 max_hold_ns;)

HOOK(lock_acquired)
void BPF_PROG(scl_reorder_lock_acquired, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);

	if (n) {
		n->acquisitions++;
		n->violations += beyond(lock, thread_of(how)) != 0;
	}
	account_begin(lock, thread_of(how));
}

HOOK(lock_to_release)
void BPF_PROG(scl_reorder_lock_to_release, struct syncord_lock *lock, u32 how)
{
	struct counters *n = counters_of(lock);
	u64 held = account_end(lock, thread_of(how));

	if (n) {
		n->hold_ns += held;
		at_most(&n->max_hold_ns, held);
	}
}

HOOK(should_reorder)
bool BPF_PROG(scl_reorder_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (beyond(lock, curr->pid) >= beyond(lock, anchor->pid))
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

HOOK(skip_reorder)
bool BPF_PROG(scl_reorder_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	return !reorder || (flush && !(bpf_get_prandom_u32() % flush));
}

SYNCORD_POLICY
struct syncord_ops scl_reorder = {
    .lock_acquired = (void *)scl_reorder_lock_acquired,
    .lock_to_release = (void *)scl_reorder_lock_to_release,
    .should_reorder = (void *)scl_reorder_should_reorder,
    .skip_reorder = (void *)scl_reorder_skip_reorder,
    .name = "scl-reorder",
};
