/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types and constants that the monitor program looks at.  All
 * offsets are relocated at load time (CO-RE), so only the names and the kinds
 * of the members have to be right, not their order.  A `___suffix` marks a
 * flavour: the same kernel type as another range of versions defines it.
 */
#ifndef FG_VMLINUX_MIN_H
#define FG_VMLINUX_MIN_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
#define BPF_F_NO_PREALLOC	       (1U << 0)
#define BPF_F_MMAPABLE		       (1U << 10)
#define BPF_F_INNER_MAP		       (1U << 12)
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1ULL

/* include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rseq;
struct bpf_local_storage;
struct cpumask;

/* arch/x86/include/uapi/asm/kvm_para.h */
struct kvm_steal_time {
	__u64 steal; /* ns */
	__u8 preempted;
};

struct thread_info {
	__u32 cpu;
};

typedef struct {
	__u32 val;
} kuid_t;
typedef struct {
	__u32 val;
} kgid_t;
typedef struct {
	__u64 val;    /* >= 6.3 */
	__u32 cap[2]; /* <= 6.2 */
} kernel_cap_t;

struct uid_gid_extent {
	__u32 first; /* in the namespace */
	__u32 lower_first;
	__u32 count;
};
struct uid_gid_map {
	__u32 nr_extents;
	struct uid_gid_extent extent[5]; /* up to 5 of them; else they are at `forward` */
	struct uid_gid_extent *forward;
};
struct user_namespace {
	struct uid_gid_map uid_map;
	struct user_namespace *parent;
	kuid_t owner; /* its maker */
};

struct cred {
	kuid_t uid, suid, euid;
	kgid_t gid, sgid, egid;
	kernel_cap_t cap_permitted;
	struct user_namespace *user_ns;
};

struct mm_struct {
	unsigned long end_code; /* 0 until a program is in it */
	unsigned long flags;	/* <= 6.17 */
};

typedef struct { /* >= 6.18 */
	unsigned long __mm_flags[1];
} mm_flags_t;
struct mm_struct___bitmap {
	mm_flags_t flags;
};

/* From a descriptor of the daemon to the credentials of its peer. */
struct pid {
	unsigned int level; /* of its pid namespace below the first one */
};
struct sock {
	struct pid *sk_peer_pid;
	const struct cred *sk_peer_cred;
};
struct socket {
	struct sock *sk;
};
struct file {
	void *private_data;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
	struct fdtable fdtab; /* where that points to, until it gets too small */
};

struct task_exec_state;
struct rseq_data {
	struct rseq *usrptr;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int tgid;
	unsigned int flags;
	/* an int, since 7.3 a byte; libbpf adapts the size of what has no sign */
	unsigned int on_cpu;
	int wake_cpu;
	int pid;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr; /* affinity and cpuset */
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 start_time; /* CLOCK_MONOTONIC */
	struct mm_struct *mm;
	const struct cred *real_cred;
	struct files_struct *files;
	struct bpf_local_storage *bpf_storage;
	bool throttled; /* >= 6.18: dequeued, because its cgroup used up its quota */
	/*
	 * Since 7.3 at the latest; before that mm_struct.flags tells.  The offset of its member
	 * `dumpable` comes from the loader: for a type that the kernel does not have, libbpf looks
	 * in all modules, which takes CAP_SYS_ADMIN.
	 */
	struct task_exec_state *exec_state;
	struct rseq_data rseq; /* >= 6.19 */
};

struct task_struct___rseq_pointer { /* <= 6.18 */
	struct rseq *rseq;
};

struct bpf_map {
	enum bpf_map_type map_type;
	__u32 value_size;
	__u32 max_entries;
	__u32 id;
	char name[16];
};

#pragma clang attribute pop

/*
 * What an iterator is called with, include/linux/bpf.h.  Not relocated: it is what programs are
 * written for, as a system call's arguments, and the verifier tells each pointer's type.
 */
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
};

#endif
