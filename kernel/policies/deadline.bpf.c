// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * deadline: each waiter has a time by which it wants the lock, from its entry: `urgent_us` for
 * threads of a cgroup and interrupts, `slo_us` for others.  Who has an earlier one than the head
 * of the queue comes next; behind an urgent head so do all urgent ones, until another's time is
 * near.
 *
 * Proved by: the waits of the two classes, from the entry to the head of the queue, as histograms
 * (bucket n: 2^n ns and more); misses of each, waiters that were late when they became the head.
 */
#include "syncord.bpf.h"

const volatile u64 cgroup; /* of the urgent ones; 0: those with nice below 0, and real-time */
const volatile u64 urgent_us = 100, slo_us = 5000;
const volatile bool reorder = true;

enum { DEADLINE, URGENT }; /* of node->aux */

SYNCORD_COUNTERS(u64 urgent; u64 urgent_late; u64 others; u64 others_late; u64 max_late_ns;
		 u64 chosen; u64 urgent_wait[SYNCORD_BUCKETS]; u64 others_wait[SYNCORD_BUCKETS];)

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(deadline_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	/* An interrupt's cgroup is that of whom it interrupted; its priority is above all. */
	bool urgent = cgroup && node->pid ? syncord_cgroup() == cgroup : node->prio < 120;

	node->aux[DEADLINE] = node->enq_ns + 1000 * (urgent ? urgent_us : slo_us);
	node->aux[URGENT] = urgent;
	return 0;
}

HOOK(should_reorder)
bool BPF_PROG(deadline_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (curr->aux[DEADLINE] >= anchor->aux[DEADLINE] &&
	    !(curr->aux[URGENT] && anchor->aux[URGENT]))
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

HOOK(skip_reorder)
bool BPF_PROG(deadline_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	struct counters *n = counters_of(lock);
	u64 now = bpf_ktime_get_ns();
	u32 bucket = bucket_of(now - anchor->enq_ns) & (SYNCORD_BUCKETS - 1);
	/* Who has none queued before the policy came, in the place of another. */
	bool late = anchor->aux[DEADLINE] >= anchor->enq_ns && now > anchor->aux[DEADLINE];

	if (n) {
		if (anchor->aux[URGENT]) {
			n->urgent++;
			n->urgent_late += late;
			n->urgent_wait[bucket]++;
		} else {
			n->others++;
			n->others_late += late;
			n->others_wait[bucket]++;
		}
		if (late)
			at_most(&n->max_late_ns, now - anchor->aux[DEADLINE]);
	}
	return !reorder;
}

SYNCORD_POLICY
struct syncord_ops deadline = {
    .lock_to_enter_slowpath = (void *)deadline_lock_to_enter_slowpath,
    .should_reorder = (void *)deadline_should_reorder,
    .skip_reorder = (void *)deadline_skip_reorder,
    .name = "deadline",
};
