// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cohort: waiters that share the last-level cache with the head come next; after `llc_batch` of
 * them in a row those of the node, after `node_batch` there those of other nodes (levels and
 * bounds as in HMCS, Chabbi et al. 2015, and CLoF, Chehab et al., SOSP 2021).
 *
 * Proved by: across_llc and across_node of heads, the hand-overs that leave either; max_..._batch.
 */
#include "syncord.bpf.h"

const volatile u16 llc[SYNCORD_CPUS]; /* default: as sysfs has them */
const volatile u32 llc_batch = 64, node_batch = 1024;
const volatile bool reorder = true;

enum { LLC = AUX_COHORT, IN_LLC, NODE, IN_NODE }; /* of lock->aux; what was last, and how often */

SYNCORD_COUNTERS(u64 heads; u64 across_llc; u64 across_node; u64 max_llc_batch; u64 max_node_batch;
		 u64 chosen;)

static __always_inline u16 llc_of(const struct syncord_node *node)
{
	return llc[node->cpu & (SYNCORD_CPUS - 1)];
}

HOOK(should_reorder)
bool BPF_PROG(cohort_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	bool same_node = anchor->nid == curr->nid, same_llc = llc_of(anchor) == llc_of(curr);
	bool next = lock->aux[IN_NODE] >= node_batch ? !same_node :
		    lock->aux[IN_LLC] >= llc_batch   ? same_node && !same_llc :
						       same_llc;

	if (next)
		SYNCORD_COUNT(lock, chosen);
	return next;
}

HOOK(skip_reorder)
bool BPF_PROG(cohort_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	u64 this_llc = 1 + (u64)llc_of(anchor), node = 1 + (u64)(u16)anchor->nid;
	bool same_llc = lock->aux[LLC] == this_llc, same_node = lock->aux[NODE] == node;
	struct counters *n = counters_of(lock);

	if (n) {
		n->heads++;
		n->across_llc += lock->aux[LLC] && !same_llc;
		n->across_node += lock->aux[NODE] && !same_node;
	}
	lock->aux[LLC] = this_llc;
	lock->aux[IN_LLC] = same_llc ? lock->aux[IN_LLC] + 1 : 1;
	lock->aux[NODE] = node;
	lock->aux[IN_NODE] = same_node ? lock->aux[IN_NODE] + 1 : 1;
	if (n) {
		at_most(&n->max_llc_batch, lock->aux[IN_LLC]);
		at_most(&n->max_node_batch, lock->aux[IN_NODE]);
	}
	return !reorder;
}

SYNCORD_POLICY
struct syncord_ops cohort = {
    .should_reorder = (void *)cohort_should_reorder,
    .skip_reorder = (void *)cohort_skip_reorder,
    .name = "cohort",
};
