// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * numa: waiters of the node that the head of the queue is on come next (SynCord, Figure 4), until
 * the kernel's bound on being passed, or one head in `flush` that lets the queue be as it is.
 *
 * Proved by: across / heads, the share of hand-overs in the queue that go to another node, against
 * that of `-o reorder=0`, which only counts.
 */
#include "syncord.bpf.h"

const volatile bool reorder = true;
const volatile u32 flush = 65536;

SYNCORD_COUNTERS(u64 heads; u64 across; u64 max_batch; u64 skipped; u64 chosen;)

HOOK(should_reorder)
bool BPF_PROG(numa_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (anchor->nid != curr->nid)
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

/* Once a head: heads follow each other as owners do. */
HOOK(skip_reorder)
bool BPF_PROG(numa_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	struct counters *n = counters_of(lock);
	u64 node = 1 + (u64)(u16)anchor->nid, batch = 1;
	bool skip = !reorder || (flush && !(bpf_get_prandom_u32() % flush));

	if (n) {
		n->heads++;
		n->skipped += skip;
		if (lock->aux[AUX_NUMA] == node)
			batch += lock->aux[AUX_NUMA + 1];
		else if (lock->aux[AUX_NUMA])
			n->across++;
		at_most(&n->max_batch, batch);
	}
	lock->aux[AUX_NUMA] = node;
	lock->aux[AUX_NUMA + 1] = batch;
	return skip;
}

SYNCORD_POLICY
struct syncord_ops numa = {
    .should_reorder = (void *)numa_should_reorder,
    .skip_reorder = (void *)numa_skip_reorder,
    .name = "numa",
};
