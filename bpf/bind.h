/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which slot is a thread's: what its thread-local storage says, once, if its process has said
 * hello.
 */
#ifndef FG_BIND_H
#define FG_BIND_H

#include "threads.h"
#include "who.h"

/*
 * Of a process that said hello and has other credentials by now (a daemon that has given up root):
 * its library reads in slot 0 that another hello is due.  One thread alone that has other
 * credentials is not the process.
 */
static __noinline int note_end(struct task_struct *task, struct task_struct *leader,
			       struct fg_owner *owner)
{
	struct fg_slot *slot;
	__u32 zero = 0;
	void *array;

	if (READ_ONCE(owner->who.known) != FG_KNOWN ||
	    is_same(leader->flags & PF_EXITING ? task : leader, &owner->who))
		return 0;
	array = bpf_map_lookup_elem(&processes, &owner->index);
	slot = array ? bpf_map_lookup_elem(array, &zero) : NULL;
	if (slot)
		WRITE_ONCE(slot->ended, 1);
	return 0;
}

/*
 * Bind the current task to the slot that its TLS names.  `task` must be current
 * (only then is its memory the one that is mapped); `t` is its storage, if it
 * has any.
 */
static __noinline struct fg_slot *bind(struct task_struct *task, struct thread **thread)
{
	struct task_struct *leader = task->group_leader;
	struct fg_tls_bind tls;
	struct fg_owner *owner;
	struct fg_slot *slot;
	struct thread *t;
	__u64 area;

	if (!has_storage(leader))
		return NULL;
	owner = bpf_task_storage_get(&owners, leader, NULL, 0);
	if (!owner)
		return NULL;
	/* Before the first look at its memory. */
	if (!is_same(task, &owner->who)) {
		note_end(task, leader, owner);
		return NULL;
	}
	area = rseq_area(task);
	if (!area || bpf_probe_read_user(&tls, sizeof(tls), (void *)(area + owner->tls_offset)))
		return NULL;
	if (!tls.slot || tls.check != (tls.slot ^ FG_TLS_MAGIC))
		return NULL;
	slot = slot_at(owner->index, tls.slot);
	if (!slot)
		return NULL;
	t = bpf_task_storage_get(&threads, task, NULL, storage_at_switch);
	if (!t)
		return NULL;
	t->index = owner->index;
	t->slot = tls.slot;
	t->domain = owner->domain;
	t->who = owner->who;
	WRITE_ONCE(slot->bound, task->pid);
	*thread = t;
	return slot;
}

#endif
