/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a policy is written with: docs/design/syncord.md has the hooks, sample.bpf.c all of
 * a spinlock.
 *
 * Options are `const volatile` variables, set by `-o NAME=VALUE`; for an array over CPUs the value
 * is a list such as 4-7, for a cgroup the path of its folder.  Counters are u64 members of struct
 * counters, one struct a target and CPU; `flexguard kernel status` adds up those of all CPUs, but
 * of min_... and max_... it takes the least (0: none) and the most.  Members that end in an
 * underscore are not shown.
 */
#ifndef SYNCORD_BPF_H
#define SYNCORD_BPF_H

#include "vmlinux_syncord.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define SYNCORD_TARGETS	   16  /* of one policy */
#define SYNCORD_CPUS	   512 /* a power of 2 */
#define SYNCORD_BUCKETS	   32
#define SYNCORD_UNTIL_FREE (1ULL << 63) /* of a back-off: no longer than the lock is held */

/*
 * lock->aux belongs to all policies that are attached together (numa+hybrid), and goes on when one
 * is replaced by another: 0 and 1 numa, 2 hybrid; 4 to 7 cohort, whose queue is not numa's; 4 bias,
 * whose locks have no queue.
 */
enum { AUX_NUMA = 0, AUX_HYBRID = 2, AUX_COHORT = 4, AUX_BIAS = 4 };

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SYNCORD_COUNTERS(...)                                                                \
	struct counters {                                                                    \
		__VA_ARGS__                                                                  \
	};                                                                                   \
	struct {                                                                             \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                     \
		__uint(max_entries, SYNCORD_TARGETS);                                        \
		__type(key, u32);                                                            \
		__type(value, struct counters);                                              \
	} counters SEC(".maps");                                                             \
	static __always_inline struct counters *counters_of(const struct syncord_lock *lock) \
	{                                                                                    \
		u32 id = lock->id;                                                           \
                                                                                             \
		return bpf_map_lookup_elem(&counters, &id);                                  \
	}

#define SYNCORD_COUNT(lock, member)                          \
	do {                                                 \
		struct counters *count_ = counters_of(lock); \
                                                             \
		if (count_)                                  \
			count_->member++;                    \
	} while (0)

#define HOOK(name) SEC("struct_ops/" #name)
/* The table of hooks; libbpf 1.1 knows no .struct_ops.link, and the command makes links of all. */
#define SYNCORD_POLICY SEC(".struct_ops")

static __always_inline u64 syncord_cgroup(void)
{
	return bpf_get_current_task_btf()->cgroups->dfl_cgrp->kn->id;
}

static __always_inline void at_most(u64 *most, u64 n)
{
	if (n > *most)
		*most = n;
}

static __always_inline void at_least(u64 *least, u64 n)
{
	if (!*least || n < *least)
		*least = n;
}

/* n of log2(ns), to count waits in */
static __always_inline u32 bucket_of(u64 ns)
{
	u32 bucket = 0;

	for (int shift = 16; shift; shift /= 2)
		if (ns >> shift) {
			ns >>= shift;
			bucket += shift;
		}
	return bucket < SYNCORD_BUCKETS ? bucket : SYNCORD_BUCKETS - 1;
}

#endif
