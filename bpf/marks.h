/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mark.  Whether a thread is counted, and where, is one 64-bit word in its
 * task storage.  Counters go up only together with the store of a mark, and
 * down only with the removal of that mark (exchange or compare-and-swap), by
 * exactly what the mark says.  So nothing is counted twice, nothing is taken
 * back twice, and a counter never goes below zero, whichever events are missed.
 * Its bits: mark_bits.h.
 *
 *	switch-out, critical   NONE -> PREEMPTED, BLOCKED, DEFERRED: by the thread's own CPU
 *	other user task runs   DEFERRED -> PREEMPTED: that CPU's next switch
 *	wake-up                BLOCKED -> PREEMPTED
 *	migration              PREEMPTED, DEFERRED -> PREEMPTED, with the new CPU
 *	switch-in, exit, exec  any -> NONE
 *	audit                  stale -> NONE; PREEMPTED -> PREEMPTED, with the CPUs allowed now
 *
 * A marked thread is off CPU, and must be switched in before it can exit, which
 * takes the mark.  Should that event be missed, the next switch-out, the exit
 * or the audit takes it.
 */
#ifndef FG_MARKS_H
#define FG_MARKS_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include "compat.h"
#include "../src/abi/protocol.h"
#include "groups.h"
#include "mark_bits.h"
#include "once.h"

/* Frozen by the loader: user space can map it read-only and nothing else. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fg_counters);
} counters SEC(".maps");

/* Told by the daemon, now and then: CPUs come and go. */
__u32 online_cpus = 1;

/* Set by the loader, once. */
const volatile __u8 cpu_near[FG_MAX_CPUS] = {}; /* enum fg_near */
const volatile bool domains_only = false;	/* fg_counters.domains_only */
const volatile __u32 cpu_shift = 0; /* up to 4: FG_MAX_CPUS CPUs in FG_CPU_GROUPS groups */

/*
 * The groups of CPUs that a thread may use, by its affinity and its cpuset as they are now.  Most
 * threads may use all, which is 0.
 */
static __noinline __u32 groups_of(struct task_struct *task)
{
	__u64 bits[FG_MAX_CPUS / 64];

	if (task->nr_cpus_allowed >= READ_ONCE(online_cpus))
		return 0;
	/* May read beyond a mask of fewer bits: what is there stands for CPUs that do not exist. */
	if (bpf_probe_read_kernel(bits, sizeof(bits), as_memory(task)->cpus_ptr))
		return 0;
	return groups_in(bits, cpu_shift);
}

static __always_inline struct fg_counters *get_counters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/*
 * Of the mark; FG_DOMAIN_ALL, 0, if it has none.  The barriers keep the compiler from
 * joining tests of it: that `domain - 1 < 63` bounds it, the verifier of 6.12 does not see.
 */
static __always_inline __u32 bounded_domain(__u64 mark)
{
	__u32 domain = mark_domain(mark);

	barrier_var(domain);
	if (domain >= FG_MAX_DOMAINS)
		domain = FG_DOMAIN_ALL;
	barrier_var(domain);
	return domain;
}

/*
 * Add `by` (1 or -1) to every counter that a thread with this mark belongs to.
 *
 * Not static, as all here that take numbers only: the verifier then looks at it once for a program,
 * and not once for each path that leads to it (5.6, 51c39bb1d5d1, "bpf: Introduce
 * function-by-function verification"; the program loads in half the time).
 */
__noinline int count(__u64 mark, __u32 by)
{
	struct fg_counters *c = get_counters();
	__u32 cpu = mark_cpu(mark), domain = bounded_domain(mark), groups = mark_groups(mark), g;
	__u32 *usable;

	if (!c)
		return 0;
	/*
	 * Compare it itself, not the mark that it comes from, or the verifier does not see the
	 * bound.
	 */
	barrier_var(cpu);
	if (mark_kind(mark) == MARK_PREEMPTED) {
		if (!domains_only)
			__sync_fetch_and_add(&c->dom[FG_DOMAIN_ALL].preempted, by);
		if (cpu < FG_MAX_CPUS)
			__sync_fetch_and_add(&c->cpu[cpu].preempted, by);
		if (domain == FG_DOMAIN_ALL)
			return 0;
		if (cpu < FG_MAX_CPUS)
			__sync_fetch_and_add(&c->queued[cpu][domain], by);
		if (!groups)
			__sync_fetch_and_add(&c->dom[domain].preempted, by);
		/* Unrolled: 460 instructions for the verifier, 1400 as a loop, in each program. */
		usable = c->usable[domain];
		barrier_var(usable);
#pragma unroll
		for (g = 0; g < FG_CPU_GROUPS; g++) {
			if (!(g % 8) && !(groups >> g))
				break;
			if (groups & 1u << g)
				__sync_fetch_and_add(&usable[g], by);
		}
	} else if (mark_kind(mark) == MARK_BLOCKED) {
		if (!domains_only)
			__sync_fetch_and_add(&c->dom[FG_DOMAIN_ALL].blocked, by);
		if (domain != FG_DOMAIN_ALL)
			__sync_fetch_and_add(&c->dom[domain].blocked, by);
	}
	return 0;
}

/* One more event in the totals, which only ever grow.  CPUs that have no place share others'. */
__noinline int count_event(__u64 mark)
{
	struct fg_counters *c = get_counters();
	__u32 cpu = mark_cpu(mark) % FG_MAX_CPUS;

	if (!c)
		return 0;
	if (mark_kind(mark) == MARK_PREEMPTED)
		__sync_fetch_and_add(&c->cpu[cpu].total_preempted, 1);
	else if (mark_kind(mark) == MARK_BLOCKED)
		__sync_fetch_and_add(&c->cpu[cpu].total_blocked, 1);
	return 0;
}

static __always_inline void count_missed(void)
{
	struct fg_counters *c = get_counters();

	if (c)
		__sync_fetch_and_add(&c->missed, 1);
}

/*
 * Replace the mark `old`; true if it was still there.  Counts up before the
 * swap and down after it, so that no counter is below the truth in between.
 */
static __always_inline bool swap_mark(__u64 *mark, __u64 old, __u64 new)
{
	count(new, 1);
	if (__sync_val_compare_and_swap(mark, old, new) != old) {
		count(new, -1);
		return false;
	}
	count(old, -1);
	return true;
}

static __always_inline void clear_mark(__u64 *mark)
{
	__u64 old = __sync_lock_test_and_set(mark, 0);

	if (old)
		count(old, -1);
}

/* The caller has cleared the old mark, and runs on the CPU that switches the thread. */
static __always_inline void set_mark(__u64 *mark, __u64 new)
{
	count(new, 1);
	WRITE_ONCE(*mark, new);
}

#endif
