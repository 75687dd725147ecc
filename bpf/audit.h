/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that looks at all threads now and then, for what no event has told. */
#ifndef FG_AUDIT_H
#define FG_AUDIT_H

#include "defer.h"
#include "marks.h"
#include "threads.h"

enum odd {
	ODD_NOT = 0,
	ODD_RUNS = 1,	  /* on CPU, though counted or written down as off it */
	ODD_RUNS_NOT = 2, /* the other way round */
};

/* Is the task where its last event left it? */
static __always_inline enum odd odd_of(struct task_struct *task, const struct thread *t, __u64 mark)
{
	if (task->flags & PF_EXITING)
		return mark ? ODD_RUNS : ODD_NOT;
	if (task->on_cpu)
		return mark || (t->slot && t->state != FG_STATE_ON) ? ODD_RUNS : ODD_NOT;
	return t->slot && t->state == FG_STATE_ON ? ODD_RUNS_NOT : ODD_NOT;
}

/*
 * Looks for threads that are not what their last event says (20).  Seeing one
 * once proves nothing: the hooks run a moment before the switch itself.  Seeing
 * the same again, in a later audit and without an event in between, does.
 */
SEC("iter/task")
int audit(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct fg_slot *slot;
	enum odd odd, before;
	struct thread *t;
	__u64 mark;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t) {
		if (early_storage && !(task->flags & (PF_EXITING | PF_KTHREAD)))
			thread_make(task);
		return 0;
	}
	mark = READ_ONCE(t->mark);
	odd = odd_of(task, t, mark);
	if (t->audited != t->changes) {
		t->audited = t->changes;
		t->audits = 0;
		t->odd = odd;
		return 0;
	}
	t->audits++;
	before = t->odd;
	if (odd)
		t->odd = odd;

	if (odd && odd == before) {
		t->odd = ODD_NOT;
		count_missed();
		if (mark)
			swap_mark(&t->mark, mark, MARK_NONE);
		if (task->flags & PF_EXITING)
			return 0;
		/*
		 * It was not current when it left, so whether it is critical cannot be told any
		 * more.
		 */
		t->state = odd == ODD_RUNS ? FG_STATE_ON :
			   task->__state   ? FG_STATE_SLEEP :
					     FG_STATE_RUNNABLE;
		slot = slot_of(t, task->pid);
		if (slot) {
			WRITE_ONCE(slot->state, t->state);
			WRITE_ONCE(slot->cpu, cpu_of(task));
		}
	} else if (mark_kind(mark) == MARK_DEFERRED) {
		promote(t, task, mark, mark_cpu(mark));
	} else if (mark_kind(mark) == MARK_PREEMPTED && t->audits >= FG_AUDIT_CAP) {
		swap_mark(&t->mark, mark, MARK_NONE);
	} else if (mark_kind(mark) == MARK_PREEMPTED && mark_groups(mark) != groups_of(task)) {
		/* Its affinity or its cpuset was changed while it waits. */
		swap_mark(&t->mark, mark,
			  make_mark(MARK_PREEMPTED, mark_cpu(mark), mark_domain(mark),
				    groups_of(task)));
	}
	return 0;
}

#endif
