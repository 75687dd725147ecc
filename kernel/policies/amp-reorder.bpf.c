// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * amp-reorder: waiters on fast CPUs come before those on slow ones, in the queue only.
 *
 * Proved by: fast against slow, heads of the queue by class.  With few threads slow ones are passed
 * until the kernel's bound; with many the paper has equal shares (SynCord, Table 4).
 */
#include "syncord.bpf.h"

const volatile bool slow[SYNCORD_CPUS]; /* default: CPUs of less than the most capacity in sysfs */
const volatile bool reorder = true;

SYNCORD_COUNTERS(u64 fast; u64 slow; u64 chosen;)

static __always_inline bool is_slow(const struct syncord_node *node)
{
	return slow[node->cpu & (SYNCORD_CPUS - 1)];
}

HOOK(should_reorder)
bool BPF_PROG(amp_reorder_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (is_slow(curr))
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

HOOK(skip_reorder)
bool BPF_PROG(amp_reorder_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	if (is_slow(anchor))
		SYNCORD_COUNT(lock, slow);
	else
		SYNCORD_COUNT(lock, fast);
	return !reorder;
}

SYNCORD_POLICY
struct syncord_ops amp_reorder = {
    .should_reorder = (void *)amp_reorder_should_reorder,
    .skip_reorder = (void *)amp_reorder_skip_reorder,
    .name = "amp-reorder",
};
