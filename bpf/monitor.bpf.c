// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The preemption monitor.  At each context switch it asks whether the thread
 * that leaves the CPU is on the critical path of a lock, and keeps two counts
 * of such threads: preempted, runnable but off CPU, and blocked, asleep (marks.h).  It also
 * writes back to each thread's slot whether the thread runs, so that a waiter can
 * look at one owner instead of at everybody.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../src/abi/protocol.h"
#include "audit.h"
#include "bind.h"
#include "compat.h"
#include "critical.h"
#include "daemon.h"
#include "defer.h"
#include "marks.h"
#include "switch.h"
#include "threads.h"
#include "vcpu.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader, once. */
const volatile bool count_at_once =
    false; /* a thread that makes room for a kernel thread is preempted */

/* ---- context switch -------------------------------------------------------- */

/* Whether a thread that leaves its CPU would have used it any longer. */
static __always_inline bool wants_cpu(struct task_struct *prev, bool preempt)
{
	return (preempt || !prev->__state) && !is_throttled(prev);
}

static __always_inline __u32 turn_clock(void)
{
	return (__u32)(bpf_ktime_get_ns() >> FG_SHARES_LOG2);
}

static __always_inline void end_turn(struct fg_slot *slot, struct task_struct *next)
{
	__u32 since = READ_ONCE(slot->shares_since);

	if (since && !(next->flags & PF_KTHREAD)) {
		WRITE_ONCE(slot->turn, turn_clock() + 1 - since); /* it is odd */
		WRITE_ONCE(slot->shares_since, 0);
	}
}

static __always_inline void switched_out(struct task_struct *prev, struct task_struct *next,
					 bool preempt, __u32 cpu)
{
	struct thread *t = thread_of(prev);
	struct fg_slot *slot = NULL;
	bool runnable;
	__u64 mark;

	if (t) {
		/*
		 * It ran until now, so a mark is left over from a switch-in that we did not see
		 * (20).
		 */
		if (t->mark) {
			clear_mark(&t->mark);
			count_missed();
		}
		slot = slot_of(t, prev->pid);
		/* Another program or user by now: nothing more of it is read, nor told. */
		if (slot && !is_same(prev, &t->who)) {
			WRITE_ONCE(slot->state, FG_STATE_UNKNOWN);
			slot = NULL;
		}
	}
	if (!slot) {
		if (t) {
			t->slot = 0;
			t->state = FG_STATE_UNKNOWN;
			t = NULL; /* as if it had none: the verifier looks at bind() once */
		}
		slot = bind(prev, &t);
		if (!slot || !t)
			return;
	}

	t->changes++;
	runnable = wants_cpu(prev, preempt);
	t->state = runnable ? FG_STATE_RUNNABLE : FG_STATE_SLEEP;
	WRITE_ONCE(slot->state, t->state);
	WRITE_ONCE(slot->cpu, cpu);
	if (runnable) {
		slot->involuntary++;
		end_turn(slot, next);
	}
	if (!is_critical(slot))
		return;

	if (runnable && next->flags & PF_KTHREAD && may_defer && !count_at_once &&
	    cpu < FG_MAX_CPUS) {
		/* One in five comes straight back (14): wait for what runs here next. */
		set_mark(&t->mark, make_mark(MARK_DEFERRED, cpu, t->domain, 0));
		cpus[cpu].deferred = prev->pid;
		return;
	}
	mark = runnable ? make_mark(MARK_PREEMPTED, cpu, t->domain, groups_of(prev)) :
			  make_mark(MARK_BLOCKED, cpu, t->domain, 0);
	set_mark(&t->mark, mark);
	count_event(mark);
	if (runnable)
		preempted_while_critical(t, slot);
	else
		slot->blocked++;
}

/* An exiting thread takes no more locks: its CPU is as good as free. */
static __always_inline bool displaces(struct task_struct *next, struct task_struct *prev,
				      bool preempt)
{
	return prev->tgid == next->tgid && !(prev->flags & PF_EXITING) && wants_cpu(prev, preempt);
}

/*
 * Its turn begins, if it has waited for the CPU and another process's thread wanted to keep that.
 * After a sleep there are no turns yet; a kernel thread in between does not end one.
 */
static __always_inline void begin_turn(struct thread *t, struct fg_slot *slot,
				       struct task_struct *next, struct task_struct *prev,
				       bool preempt)
{
	bool woken = t->woken;
	__u32 since = 0;

	t->woken = 0;
	if (!woken) {
		if (prev->flags & PF_KTHREAD && prev->pid)
			return;
		if (prev->pid && prev->tgid != next->tgid && !(prev->flags & PF_EXITING) &&
		    wants_cpu(prev, preempt))
			since = turn_clock() | 1;
	}
	WRITE_ONCE(slot->shares_since, since);
}

static __always_inline void switched_in(struct task_struct *next, struct task_struct *prev,
					bool preempt, __u32 cpu)
{
	struct thread *t = thread_of(next);
	struct fg_slot *slot;

	if (!t)
		return;
	if (t->mark)
		clear_mark(&t->mark);
	/* An exiting thread's slot says DEAD, or is somebody else's by now. */
	if (!t->slot || next->flags & PF_EXITING)
		return;
	t->state = FG_STATE_ON;
	slot = slot_of(t, next->pid);
	if (slot) {
		WRITE_ONCE(slot->state, FG_STATE_ON);
		WRITE_ONCE(slot->displaces, displaces(next, prev, preempt));
		WRITE_ONCE(slot->cpu, cpu);
		begin_turn(t, slot, next, prev, preempt);
	}
}

static __always_inline void switched(bool preempt, struct task_struct *prev,
				     struct task_struct *next, __u32 cpu)
{
	/* An exiting holder is never switched in again, so nothing would undo its mark (5). */
	if (!(prev->flags & (PF_KTHREAD | PF_EXITING)))
		switched_out(prev, next, preempt, cpu);
	if (next->flags & PF_KTHREAD)
		return;
	if (may_defer && cpu < FG_MAX_CPUS && cpus[cpu].deferred)
		settle_deferred(cpu, next->pid);
	switched_in(next, prev, preempt, cpu);
}

/* The clock's own time is taken off: two readings before, one after. */
__noinline int add_cost(__u64 before, __u64 start)
{
	struct fg_counters *c = get_counters();
	__u64 took = bpf_ktime_get_ns() - start, clock = start - before;

	if (c) {
		__sync_fetch_and_add(&c->cost_ns, took > clock ? took - clock : 0);
		__sync_fetch_and_add(&c->cost_samples, 1);
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 before = 0, start = 0; /* the verifier wants both, wherever they are spilt */
	__u32 cpu;

	if (!active)
		return 0;
	cpu = bpf_get_smp_processor_id();
	if (cpu < FG_MAX_CPUS && !(++cpus[cpu].switches % FG_COST_EVERY)) {
		before = bpf_ktime_get_ns();
		start = bpf_ktime_get_ns();
	}
	switched(preempt, prev, next, cpu);
	if (start)
		add_cost(before, start);
	return 0;
}

/* ---- the other events ------------------------------------------------------ */

/* sched_wakeup, not sched_waking: only now is it on a run queue, and its CPU known. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct fg_slot *slot;
	struct thread *t;
	__u64 old;
	__u32 cpu;

	if (!active)
		return 0;
	t = thread_of(task);
	/* Woken before it was switched out: still ON, nothing has been counted. */
	if (!t || t->state != FG_STATE_SLEEP)
		return 0;
	t->woken = 1;
	if (is_throttled(task))
		return 0;
	cpu = cpu_of(task);
	t->state = FG_STATE_RUNNABLE;
	t->changes++;
	old = READ_ONCE(t->mark);
	if (mark_kind(old) == MARK_BLOCKED)
		swap_mark(&t->mark, old,
			  make_mark(MARK_PREEMPTED, cpu, mark_domain(old), groups_of(task)));
	slot = slot_of(t, task->pid);
	if (slot) {
		WRITE_ONCE(slot->state, FG_STATE_RUNNABLE);
		WRITE_ONCE(slot->cpu, cpu);
	}
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int dest)
{
	struct fg_slot *slot;
	struct thread *t;
	__u64 old;

	if (!active)
		return 0;
	t = thread_of(task);
	if (!t || t->state != FG_STATE_RUNNABLE)
		return 0;
	old = READ_ONCE(t->mark);
	/* A deferred thread that is sent elsewhere does not come straight back. */
	if (mark_kind(old) == MARK_PREEMPTED || mark_kind(old) == MARK_DEFERRED)
		promote(t, task, old, dest);
	slot = slot_of(t, task->pid);
	if (slot)
		WRITE_ONCE(slot->cpu, dest);
	return 0;
}

/* Loaded with EARLY_STORAGE only. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (active && parent->tgid == child->tgid)
		thread_make(child);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct fg_slot *slot;
	struct thread *t;

	t = thread_of(task);
	if (!t)
		return 0;
	clear_mark(&t->mark);
	t->state = FG_STATE_DEAD;
	slot = slot_of(t, task->pid);
	if (slot)
		WRITE_ONCE(slot->state, FG_STATE_DEAD);
	return 0;
}

/* Old offsets, new image: forget the thread and the process until it says hello again. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct fg_slot *slot;
	struct thread *t;

	if (!has_storage(task))
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (t) {
		clear_mark(&t->mark);
		slot = slot_of(t, task->pid);
		if (slot)
			WRITE_ONCE(slot->state, FG_STATE_DEAD);
		bpf_task_storage_delete(&threads, task);
	}
	bpf_task_storage_delete(&owners, task);
	return 0;
}
