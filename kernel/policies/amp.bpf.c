// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * amp: slow CPUs wait before they queue, as long as the lock is held and the kernel allows
 * (SynCord, Figure 6).  Entry is where a class is preferred; together with numa, nodes are by the
 * queue.
 *
 * Proved by: fast against slow, contended acquisitions by class.  Those that found the lock free
 * are not among them (amp+lockstat counts all, by CPU).
 */
#include "syncord.bpf.h"

const volatile bool slow[SYNCORD_CPUS]; /* default: CPUs of less than the most capacity in sysfs */
const volatile u64 backoff_ns = 10000000;

SYNCORD_COUNTERS(u64 fast; u64 slow; u64 backoffs;)

HOOK(lock_to_enter_slowpath)
u64 BPF_PROG(amp_lock_to_enter_slowpath, struct syncord_lock *lock, struct syncord_node *node)
{
	if (!slow[node->cpu & (SYNCORD_CPUS - 1)]) {
		SYNCORD_COUNT(lock, fast);
		return 0;
	}
	SYNCORD_COUNT(lock, slow);
	if (!backoff_ns)
		return 0;
	SYNCORD_COUNT(lock, backoffs);
	return backoff_ns | SYNCORD_UNTIL_FREE;
}

SYNCORD_POLICY
struct syncord_ops amp = {
    .lock_to_enter_slowpath = (void *)amp_lock_to_enter_slowpath,
    .name = "amp",
};
