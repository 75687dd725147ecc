/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the companion scheduler looks at and calls in a kernel with sched_ext, beside
 * vmlinux_min.h: the kernel's own definitions, found by name in its type information when the
 * program is loaded.  Documentation/scheduler/sched-ext.rst of the kernel.
 */
#ifndef FG_VMLINUX_SCHED_H
#define FG_VMLINUX_SCHED_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>

/* include/linux/sched/ext.h; these are part of its ABI */
#define SCX_DSQ_GLOBAL	(1ULL << 63 | 1)
#define SCX_DSQ_LOCAL	(1ULL << 63 | 2)
#define SCX_TASK_QUEUED 1u
#define SCX_KICK_IDLE	1ULL
#define SCX_ENQ_WAKEUP	1ULL
#define SCX_WEIGHT	100u /* of nice 0 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* In full, for the kernel's functions that take one: libbpf compares. */
struct cpumask {
	unsigned long bits[1];
};

struct sched_entity {
	__u64 sum_exec_runtime;
};
struct sched_ext_entity {
	__u32 flags, weight;
	__u64 slice; /* what is left of it, ns */
	__u64 dsq_vtime;
};
struct task_struct___scx {
	struct sched_entity se;
	struct sched_ext_entity scx;
};

struct scx_init_task_args {
	bool fork; /* else it was there when the scheduler came */
};
struct scx_exit_task_args;
enum scx_exit_kind { SCX_EXIT_NONE }; /* src/abi/scheduler.h has those that are told apart */
struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason, *msg;
};

#pragma clang attribute pop

/* Those members that are used.  Not relocated: the loader goes by the names, as libbpf does. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	__s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
};

struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

/*
 * 6.13, 5209c03c8ed2 and 5cbb302880f5 ("sched_ext: Rename scx_bpf_dispatch[_vtime]() to
 * scx_bpf_dsq_insert[_vtime]()", "... scx_bpf_consume() to scx_bpf_dsq_move_to_local()"): under the
 * names of 6.12 it was never tried, so the loader refuses that (src/monitor/sched_needs.c).
 */
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq, __u64 slice, __u64 vtime,
				     __u64 flags) __ksym;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq) __ksym;

extern __s32 scx_bpf_create_dsq(__u64 dsq, __s32 node) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq) __ksym;
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
				    bool *is_idle) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq, __u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

#endif
