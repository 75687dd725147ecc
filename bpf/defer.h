/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that makes room for a kernel thread often comes straight back: it is marked DEFERRED,
 * not counted, until it is known what runs next on that CPU (docs/design/monitor.md, case 14).
 */
#ifndef FG_DEFER_H
#define FG_DEFER_H

#include "marks.h"
#include "switch.h"
#include "threads.h"

/* Each CPU's own. */
static struct {
	/* pid of the thread that waits for a kernel thread to leave this CPU again */
	__u64 deferred;
	__u64 switches; /* seen; some are timed */
	__u64 pad[6];
} cpus[FG_MAX_CPUS];

/* The thread did not come straight back: count it, on the CPU that it is queued on now. */
static __always_inline void promote(struct thread *t, struct task_struct *task, __u64 old,
				    __u32 cpu)
{
	__u64 mark = make_mark(MARK_PREEMPTED, cpu, mark_domain(old), groups_of(task));
	struct fg_slot *slot;

	if (!swap_mark(&t->mark, old, mark) || mark_kind(old) != MARK_DEFERRED)
		return;
	count_event(mark);
	slot = slot_of(t, task->pid);
	if (slot)
		preempted_while_critical(t, slot);
}

/*
 * A user task gets this CPU.  If it is not the deferred thread, that one is
 * preempted for good.  It may also have been switched in elsewhere, or be dead
 * and its pid another's: the mark, which names this CPU, tells.
 */
__noinline int settle_deferred(__u32 cpu, __u32 next_pid)
{
	struct task_struct *task;
	struct thread *t;
	__u32 pid;
	__u64 old;

	if (cpu >= FG_MAX_CPUS)
		return 0;
	pid = cpus[cpu].deferred;
	cpus[cpu].deferred = 0;
	if (pid == next_pid)
		return 0;
	task = bpf_task_from_pid(pid);
	if (!task)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (t) {
		old = READ_ONCE(t->mark);
		if (old == make_mark(MARK_DEFERRED, cpu, mark_domain(old), 0))
			promote(t, task, old, cpu);
	}
	bpf_task_release(task);
	return 0;
}

#endif
