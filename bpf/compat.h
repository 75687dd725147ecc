/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between kernels, 6.1 and later; each with the version and the commit that changed
 * it, so that it can go when that is the oldest.  Where a field tells (CO-RE), one program serves
 * both; where none does, it is compiled twice: see EARLY_STORAGE.
 */
#ifndef FG_COMPAT_H
#define FG_COMPAT_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/*
 * EARLY_STORAGE: for kernels before 6.4; the loader chooses (fg_skeleton_open, src/monitor/load.c).
 *
 * 6.4, 08a7ce384e33 ("bpf: Use bpf_mem_cache_alloc/free in bpf_local_storage_elem"): before it,
 * storage that is made in sched_switch comes from kmalloc, which may wake a thread and so take the
 * run queue's lock, which is held there.  So nothing is made at a switch: each thread of a
 * registered process gets its storage when it is created (on_fork), and those that are there
 * already at the registration (equip), or in a later audit; thread_make(), threads.h.
 *
 * 6.2, 3f0e6f2b41d3 ("bpf: Add bpf_task_from_pid() kfunc"): without it the thread that was deferred
 * on a CPU cannot be found again, so nothing is deferred (defer.h).
 *
 * 6.2, a35b9af4ec2c ("bpf: Add a kfunc for generic type cast"): bpf_rdonly_cast, below.
 *
 * Not variables: libbpf would look for the missing functions in modules, which takes CAP_SYS_ADMIN.
 */
#ifdef EARLY_STORAGE
#define early_storage	       true
#define bpf_task_from_pid(pid) ((struct task_struct *)NULL)
#define bpf_task_release(task) ((void)(task))
#define as_memory(task)	       (task)
#else
#define early_storage false
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;
/*
 * The same task, as memory that is read and trusted with nothing.  For each pointer that is loaded
 * from one that it trusts, the verifier searches all types of the kernel by name
 * (btf_nested_type_is_trusted, Linux 6.18: 0.7 ms a search); loads from this one it only makes
 * safe.  Kernels before 6.4, which do not do the one, need not the other.
 */
#define as_memory(task) \
	((struct task_struct *)bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct)))
#endif

#define storage_at_switch (early_storage ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE)
#define may_defer	  (!early_storage)

/*
 * 5.12, a10787e6d58c ("bpf: Enable task local storage for tracing programs"), so in every kernel
 * since 6.1, where it is no promise: without the field the helper is called.  A test of the pointer
 * costs a load where the helper costs a call: most tasks of a machine have no storage of any kind.
 */
static __always_inline bool has_storage(struct task_struct *task)
{
	return !bpf_core_field_exists(task->bpf_storage) || as_memory(task)->bpf_storage;
}

/*
 * 5.16, bcf9033e5449 ("sched: move CPU field back into thread_info if THREAD_INFO_IN_TASK=y"):
 * architectures that have their thread_info elsewhere say in wake_cpu where it was queued last.
 */
static __always_inline __u32 cpu_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return task->wake_cpu;
}

/*
 * 6.18, 2cd571245b43 ("sched/fair: Add related data structure for task based throttle"): a
 * throttled task is queued nowhere: it waits for its quota, not for a CPU.  Kernels before do not
 * tell.
 */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return bpf_core_field_exists(task->throttled) && task->throttled;
}

/* 6.19, faba9d250eae ("rseq: Introduce struct rseq_data"). */
static __always_inline __u64 rseq_area(struct task_struct *task)
{
	struct task_struct___rseq_pointer *by_pointer = (void *)task;
	__u64 area = 0;

	/* Not by a plain load: arithmetic on what that gives is refused. */
	if (bpf_core_field_exists(task->rseq.usrptr))
		bpf_core_read(&area, sizeof(area), &task->rseq.usrptr);
	else if (bpf_core_field_exists(by_pointer->rseq))
		bpf_core_read(&area, sizeof(area), &by_pointer->rseq);
	return area;
}

/*
 * Whether others may read a task's memory.  6.18, bb6525f2f8c4 ("mm: add bitmap mm->flags field"):
 * the flags of mm_struct are a bitmap.  7.3 at the latest ("exec: introduce struct
 * task_exec_state"): they are in a structure of the task.
 */
#define MMF_DUMPABLE_MASK 3u
#define SUID_DUMP_USER	  1u /* the only one of the three values with which others may read it */

/* Set by the loader where the kernel has it; 0: it has not. */
const volatile __u32 exec_state_dumpable = 0; /* offset in struct task_exec_state */

/* Whether this kernel tells what is asked below; else the loader refuses it. */
static __always_inline bool can_tell_dumpable(void)
{
	if (bpf_core_field_exists(((struct task_struct *)0)->exec_state))
		return exec_state_dumpable != 0;
	return bpf_core_field_exists(((struct mm_struct___bitmap *)0)->flags.__mm_flags) ||
	       bpf_core_field_exists(((struct mm_struct *)0)->flags);
}

static __always_inline __u32 dumpable_of(struct task_struct *task)
{
	struct mm_struct___bitmap *by_bitmap = (void *)task->mm;
	unsigned long flags = 0;
	__u32 dumpable = 0;

	if (bpf_core_field_exists(task->exec_state)) {
		bpf_probe_read_kernel(&dumpable, sizeof(dumpable),
				      (void *)task->exec_state + exec_state_dumpable);
		return dumpable;
	}
	if (bpf_core_field_exists(by_bitmap->flags.__mm_flags))
		flags = by_bitmap->flags.__mm_flags[0];
	else if (bpf_core_field_exists(task->mm->flags))
		flags = task->mm->flags;
	return flags & MMF_DUMPABLE_MASK;
}

/* 6.3, f122a08b197d ("capability: just use a 'u64' instead of a 'u32[2]' array"). */
static __always_inline __u64 caps_of(const struct cred *cred)
{
	if (bpf_core_field_exists(cred->cap_permitted.val))
		return cred->cap_permitted.val;
	return cred->cap_permitted.cap[0] | (__u64)cred->cap_permitted.cap[1] << 32;
}

#endif
