// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * prio: threads of a cgroup, or with a priority above the ordinary (nice below 0, real-time), come
 * next.  One head in 1024 leaves the queue as it is, and the kernel bounds how long others are
 * passed.
 *
 * Proved by: the waits of the two classes, from the entry to the head of the queue, as histograms
 * (bucket n: 2^n ns and more).
 */
#include "syncord.bpf.h"

const volatile u64 cgroup;	/* 0: by priority only */
const volatile u32 below = 120; /* the kernel's numbers: 120 is nice 0 */
const volatile bool reorder = true;

enum { BOOSTED = 1 }; /* node->aux[0] */

SYNCORD_COUNTERS(u64 boosted; u64 others; u64 max_boosted_ns; u64 max_others_ns; u64 chosen;
		 u64 boosted_wait[SYNCORD_BUCKETS]; u64 others_wait[SYNCORD_BUCKETS];)

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(prio_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	if (node->prio < (s32)below || (cgroup && syncord_cgroup() == cgroup))
		node->aux[0] = BOOSTED;
	return 0;
}

HOOK(should_reorder)
bool BPF_PROG(prio_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (curr->aux[0] != BOOSTED)
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

HOOK(skip_reorder)
bool BPF_PROG(prio_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	struct counters *n = counters_of(lock);
	u64 ns = bpf_ktime_get_ns() - anchor->enq_ns;
	u32 bucket = bucket_of(ns) & (SYNCORD_BUCKETS - 1);

	if (n && anchor->aux[0] == BOOSTED) {
		n->boosted++;
		n->boosted_wait[bucket]++;
		at_most(&n->max_boosted_ns, ns);
	} else if (n) {
		n->others++;
		n->others_wait[bucket]++;
		at_most(&n->max_others_ns, ns);
	}
	return !reorder || !(bpf_get_prandom_u32() & 1023);
}

SYNCORD_POLICY
struct syncord_ops prio = {
    .lock_to_enter_slowpath = (void *)prio_lock_to_enter_slowpath,
    .should_reorder = (void *)prio_should_reorder,
    .skip_reorder = (void *)prio_skip_reorder,
    .name = "prio",
};
