/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program keeps: of each bound thread, of each registered process, and their slots. */
#ifndef FG_THREADS_H
#define FG_THREADS_H

#include "compat.h"
#include "../src/abi/protocol.h"
#include "monitor_types.h"
#include "once.h"

/* A bound thread.  Written by the CPU that switches it, but for `mark` (marks.h). */
struct thread {
	__u64 mark;
	__u32 index; /* fg_owner.index; stays with a process for life */
	__u32 slot;  /* 0: not bound */
	__u32 domain;
	/* what slot.state should be; the slot itself is the client's to scribble on */
	__u32 state;
	__u32 woken;	   /* since it was on a CPU last */
	__u32 changes;	   /* incremented when it stops running, or stops sleeping */
	struct fg_who who; /* it was bound as; bound no longer than it is that */

	/* Written by the audit only. */
	__u32 audited; /* `changes` as the audit saw it last */
	__u32 audits;  /* audits since then */
	__u32 odd;     /* enum odd, seen since then */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/*
 * Apart from `threads`, because the daemon overwrites entries as a whole, and
 * must not overwrite the mark of a leader that is counted right now.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fg_owner);
} owners SEC(".maps");

/*
 * FG_PIECES for each process, most of them not there: pages are allocated at
 * creation, and 512 KB are too much for each `ls`.  BPF_F_INNER_MAP lets them differ in size,
 * at the price of a look-up that is a call instead of inlined.
 */
struct slot_array {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fg_slot);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, __u32);
	__array(values, struct slot_array);
} processes SEC(".maps");

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return has_storage(task) ? bpf_task_storage_get(&threads, task, NULL, 0) : NULL;
}

static __always_inline struct fg_slot *slot_at(__u32 index, __u32 slot)
{
	__u32 piece = index + slot / FG_PIECE, number = slot % FG_PIECE;
	void *array;

	/* Beyond are other processes' pieces. */
	if (!slot || slot >= FG_PIECES * FG_PIECE)
		return NULL;
	array = bpf_map_lookup_elem(&processes, &piece);
	return array ? bpf_map_lookup_elem(array, &number) : NULL;
}

/* The thread's slot, if no other thread has been bound to it since. */
static __always_inline struct fg_slot *slot_of(struct thread *t, __u32 pid)
{
	struct fg_slot *slot = slot_at(t->index, t->slot);

	return slot && READ_ONCE(slot->bound) == pid ? slot : NULL;
}

/* Not at a switch, where that depends on the kernel: storage_at_switch. */
static __always_inline void thread_make(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;

	if (has_storage(leader) && bpf_task_storage_get(&owners, leader, NULL, 0))
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif
