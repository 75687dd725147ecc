/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a kernel's lock tells of itself: its class, where it was met, its owner. */
#ifndef FG_CONTENTION_LOCK_H
#define FG_CONTENTION_LOCK_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "../src/abi/contention.h"

#define TASK_COMM_LEN 16 /* include/linux/sched.h */
/* include/linux/mutex.h, kernel/locking/rwsem.c, rtmutex: flags in the word of the owner. */
#define MUTEX_FLAGS	   7ul
#define RWSEM_READER_OWNED 1ul
#define RWSEM_OWNER_FLAGS  7ul
#define RT_MUTEX_FLAGS	   1ul

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	__s64 counter;
} atomic_long_t;
struct mutex {
	atomic_long_t owner;
};
struct rw_semaphore {
	atomic_long_t owner;
};
struct rt_mutex_base {
	struct task_struct *owner;
};
struct mm_struct___lock {
	struct rw_semaphore mmap_lock;
};
typedef struct {
	int raw;
} spinlock_t;
struct sighand_struct {
	spinlock_t siglock;
};
struct task_struct___contention {
	int pid, tgid;
	char comm[TASK_COMM_LEN];
	struct mm_struct___lock *mm;
	struct sighand_struct *sighand;
};
#pragma clang attribute pop

static __always_inline __u32 class_of(__u32 flags)
{
	if (flags & FG_LCB_MUTEX)
		return FG_CLASS_MUTEX;
	if (flags & FG_LCB_RT)
		return FG_CLASS_RT;
	if (flags & FG_LCB_PERCPU)
		return FG_CLASS_PERCPU_RWSEM;
	if (flags & (FG_LCB_READ | FG_LCB_WRITE))
		return flags & FG_LCB_SPIN ? FG_CLASS_RWLOCK : FG_CLASS_RWSEM;
	return flags & FG_LCB_SPIN ? FG_CLASS_SPIN : FG_CLASS_SEMAPHORE;
}

static __always_inline __u32 role_of(__u64 lock)
{
	struct task_struct___contention *task = (void *)bpf_get_current_task();
	struct mm_struct___lock *mm = BPF_CORE_READ(task, mm);

	/* Addresses only: what is behind them is not looked at. */
	if (mm && lock == (__u64)mm + bpf_core_field_offset(mm->mmap_lock))
		return FG_MET_MMAP_LOCK;
	if (lock == (__u64)BPF_CORE_READ(task, sighand) +
			bpf_core_field_offset(((struct sighand_struct *)0)->siglock))
		return FG_MET_SIGLOCK;
	return FG_MET_NONE;
}

/*
 * The owner that a lock names whose waiters sleep.  A task is freed one grace period after its end
 * at the earliest, and owns nothing then: what is read here is still there.  Of readers a rwsem
 * names only one, which may have left.
 */
static __always_inline void look_at_owner(struct fg_waiting *w, void *lock, __u32 flags)
{
	struct task_struct___contention *task;
	__u64 owner = 0;

	w->id = 0;
	w->owner_tgid = 0;
	w->owner_comm[0] = '\0';
	if (w->class == FG_CLASS_MUTEX) {
		owner = (__u64)BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~MUTEX_FLAGS;
	} else if (w->class == FG_CLASS_RWSEM) {
		owner = (__u64)BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
		owner = owner & RWSEM_READER_OWNED ? 0 : owner & ~RWSEM_OWNER_FLAGS;
	} else if (w->class == FG_CLASS_RT && !(flags & (FG_LCB_READ | FG_LCB_WRITE))) {
		owner = (__u64)BPF_CORE_READ((struct rt_mutex_base *)lock, owner) & ~RT_MUTEX_FLAGS;
	}
	task = (void *)owner;
	if (!task)
		return;
	w->id = (__u32)BPF_CORE_READ(task, pid);
	w->owner_tgid = (__u32)BPF_CORE_READ(task, tgid);
	BPF_CORE_READ_STR_INTO(&w->owner_comm, task, comm);
}

#endif
