// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vcpu: in a guest, waiters whose virtual CPU the hypervisor does not run at this moment are passed
 * over: a lock that is handed to one lies idle until its CPU comes back.  For as long as the kernel
 * lets anybody be passed.  It takes a hypervisor that tells (vcpu_is_preempted()); where none does,
 * all CPUs run and nobody is moved.
 *
 * Proved by: off / heads, the heads of the queue whose CPU was off, against that of
 * `-o reorder=no`, which only counts.
 */
#include "syncord.bpf.h"

const volatile bool reorder = true;

SYNCORD_COUNTERS(u64 heads; u64 off; u64 chosen;)

bool bpf_syncord_cpu_preempted(u32 cpu) __ksym;

HOOK(should_reorder)
bool BPF_PROG(vcpu_should_reorder, struct syncord_lock *lock, struct syncord_node *anchor,
	      struct syncord_node *curr)
{
	if (bpf_syncord_cpu_preempted(curr->cpu))
		return false;
	SYNCORD_COUNT(lock, chosen);
	return true;
}

/* Once a head, when its turn has come. */
HOOK(skip_reorder)
bool BPF_PROG(vcpu_skip_reorder, struct syncord_lock *lock, struct syncord_node *anchor)
{
	struct counters *n = counters_of(lock);

	if (n) {
		n->heads++;
		n->off += bpf_syncord_cpu_preempted(anchor->cpu);
	}
	return !reorder;
}

SYNCORD_POLICY
struct syncord_ops vcpu = {
    .should_reorder = (void *)vcpu_should_reorder,
    .skip_reorder = (void *)vcpu_skip_reorder,
    .name = "vcpu",
};
