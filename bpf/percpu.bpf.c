// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where each CPU's per-CPU variables are.  The kernel's own table (__per_cpu_offset) has a name
 * only in kernels with CONFIG_KALLSYMS_ALL; but each thread leads to the run queue of its CPU,
 * which is one of these variables, and each CPU has threads of its own (ksoftirqd).  Without
 * CONFIG_FAIR_GROUP_SCHED there is no such way, and this does not load.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "../src/abi/contention.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct rq___percpu {
	int cpu;
} __attribute__((preserve_access_index));
struct cfs_rq___percpu {
	struct rq___percpu *rq;
} __attribute__((preserve_access_index));
struct sched_entity___percpu {
	struct cfs_rq___percpu *cfs_rq;
} __attribute__((preserve_access_index));
struct task_struct___percpu {
	struct sched_entity___percpu se;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FG_PERCPU_CPUS);
	__type(key, __u32);
	__type(value, __u64);
} queue SEC(".maps"); /* of each CPU; 0: not met */

SEC("iter/task")
int queues(struct bpf_iter__task *ctx)
{
	struct task_struct___percpu *task = (void *)ctx->task;
	struct cfs_rq___percpu *cfs_rq;
	struct rq___percpu *rq;
	__u64 *at;
	__u32 cpu;

	if (!task)
		return 0;
	cfs_rq = BPF_CORE_READ(task, se.cfs_rq);
	rq = cfs_rq ? BPF_CORE_READ(cfs_rq, rq) : NULL;
	if (!rq)
		return 0;
	cpu = (__u32)BPF_CORE_READ(rq, cpu);
	at = bpf_map_lookup_elem(&queue, &cpu);
	if (at)
		*at = (__u64)rq;
	return 0;
}
