/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a policy may look at in the kernel.  Offsets are relocated when it is loaded (CO-RE), so
 * that only names and kinds of members have to be right.
 */
#ifndef VMLINUX_SYNCORD_H
#define VMLINUX_SYNCORD_H

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
typedef __u8 u8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef _Bool bool;
enum { false, true };
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/syncord.h: a handle of the lock, which stays when the lock has gone */
struct syncord_lock {
	u64 addr;
	u32 id; /* which of the policy's targets this is, from 0 */
	u16 type;
	u64 cookie;
	u64 aux[8]; /* the policy's */
};

/* One queued waiter. */
struct syncord_node {
	u64 enq_ns; /* bpf_ktime_get_ns() at the entry of the slow path */
	u32 cpu;
	s16 nid;
	s16 prio; /* less is more urgent; 100 to 139: ordinary threads, 120: nice 0; in interrupts -1, 0 */
	u32 pid; /* of the thread; 0 in interrupts */
	u16 how;
	u16 bypassed;
	u64 aux[3]; /* the policy's */
};

/* The way to the number of a thread's cgroup (version 2), the inode number of its folder. */
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct task_struct {
	struct css_set *cgroups;
	u8 on_cpu; /* of 7.3; before, an int */
};

#pragma clang attribute pop

enum { SYNCORD_SPIN = 1, SYNCORD_MUTEX = 3, SYNCORD_RWSEM = 4 }; /* type */

enum {
	SYNCORD_READ = 1,
	SYNCORD_TRY = 2,
	SYNCORD_SLOW = 4,
	SYNCORD_IRQ = 8,
	SYNCORD_IRQOFF = 16,
	SYNCORD_BIASED = 32 /* a reader who wrote to no word of the lock */
}; /* how */

/* Not relocated, but matched by the names of its members: all have to be in the kernel's. */
struct syncord_ops {
	void (*lock_to_acquire)(struct syncord_lock *lock, u32 how);
	void (*lock_acquired)(struct syncord_lock *lock, u32 how);
	void (*lock_to_release)(struct syncord_lock *lock, u32 how);
	void (*lock_released)(struct syncord_lock *lock, u32 how);
	u64 (*lock_to_enter_slowpath)(struct syncord_lock *lock, struct syncord_node *node);
	bool (*lock_enable_fastpath)(struct syncord_lock *lock, u32 how);
	bool (*should_reorder)(struct syncord_lock *lock, struct syncord_node *anchor,
			       struct syncord_node *curr);
	bool (*skip_reorder)(struct syncord_lock *lock, struct syncord_node *anchor);
	bool (*reader_bias)(struct syncord_lock *lock);
	u32 flags;
	u32 max_bypass_us; /* how long waiters may be passed; 0: 10000, which is the most */
	u32 max_wait_us;   /* of a back-off; the same, but a second at most without a spinlock */
	char name[16];
};

#endif
