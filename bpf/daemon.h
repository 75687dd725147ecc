/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs that the daemon runs: which process says hello, the heartbeat, the counters'
 * beginning and end.
 */
#ifndef FG_DAEMON_H
#define FG_DAEMON_H

#include "marks.h"
#include "threads.h"
#include "who.h"

/* What the daemon asks `prove` and `identify`, and hears. */
__u32 peer_sock;     /* descriptor of the daemon: the accepted connection */
__u32 peer_account;  /* whose quota it is (account_of) */
__u32 peer_sees_all; /* 1: no process of the machine is hidden from it, if it is root */
__u32 prove_write;   /* 1: write fg_owner.who */
__u32 prove_left;    /* threads that may be looked at still, then it stops */
/* 1: a thread is what it was at connect(); and fg_owner.who is written, if that was asked for */
__u32 proved;

/* When its process began: fork's, also after an exec. */
__u64 peer_born;

/* ... and what that is, as struct fg_who. */
__u64 proved_who[sizeof(struct fg_who) / sizeof(__u64)];

/* Registered processes; nothing to do at all while it is 0.  Written by the loader. */
__u64 active;

/*
 * Run over the threads of a process that said hello: is one of them still what it was at connect()?
 * Then, and only then, the process is one that may be looked at (who.h).  To return 1 ends the read
 * of the iterator with EAGAIN; the next read begins with the same thread (bpf_seq_read,
 * kernel/bpf/bpf_iter.c).
 */
SEC("iter/task")
int prove(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader;
	struct fg_owner *owner;
	struct fg_who who;
	__u32 barrier = 0;

	if (!task)
		return 0;
	if (!prove_left)
		return 1;
	prove_left--;
	if (task->flags & PF_EXITING)
		return 0;
	if (!tell_who(&who, task, peer_cred(peer_sock), &barrier))
		return 0;
	if (prove_write) {
		leader = task->group_leader;
		owner = bpf_task_storage_get(&owners, leader, NULL, 0);
		if (!owner)
			return 0;
		who.known = 0;
		owner->who = who;
		/* A full barrier: the rest is seen with `known`. */
		__sync_lock_test_and_set(&owner->who.known, FG_KNOWN);
	}
	who.known = FG_KNOWN;
	peer_born = task->group_leader->start_time;
	__builtin_memcpy(proved_who, &who, sizeof(proved_who));
	proved = 1;
	return 1;
}

__u32 equip_left; /* threads that `equip` may look at still */

/*
 * Loaded with EARLY_STORAGE only, and run over the threads of a process that has just registered:
 * those that were there before get their storage now.  Not by an audit, which would count as one
 * (FG_AUDIT_CAP), for all threads of the machine, whenever anybody registers.
 */
SEC("iter/task")
int equip(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	if (!equip_left)
		return 1;
	equip_left--;
	if (early_storage && !(task->flags & PF_EXITING))
		thread_make(task);
	return 0;
}

SEC("syscall")
int identify(void *args)
{
	__u64 cred = peer_cred(peer_sock);

	if (!cred)
		return 1;
	peer_account = account_of((const struct cred *)cred);
	peer_sees_all = sees_all(peer_sock);
	return 0;
}

/*
 * All slot arrays that the kernel still has, this monitor's and others', by their name: somebody
 * may have one mapped, or its descriptor, long after the process that it was made for
 * (src/monitor/arrays.c).
 */
SEC("iter/bpf_map")
int arrays(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	struct fg_found found;
	__u64 name = 0;

	if (!map || map->map_type != BPF_MAP_TYPE_ARRAY ||
	    map->value_size != sizeof(struct fg_slot) ||
	    bpf_probe_read_kernel(&name, sizeof(name), map->name) ||
	    name != *(const __u64 *)FG_SLOTS_NAME)
		return 0;
	found.id = map->id;
	found.slots = map->max_entries;
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

/* The counters are frozen for user space, the daemon included. */
SEC("syscall")
int tick(struct fg_tick *args)
{
	struct fg_counters *c = get_counters();

	if (!c)
		return 1;
	if (!can_tell_dumpable())
		return FG_TICK_BLIND;
	if (args->generation) {
		c->generation = args->generation;
		c->cpu_shift = cpu_shift;
		c->domains_only = domains_only;
		/* not a loop: the verifier walks all of it */
		bpf_probe_read_kernel(c->near, sizeof(c->near), (const void *)cpu_near);
	}
	if (args->online_cpus) {
		WRITE_ONCE(online_cpus, args->online_cpus);
		WRITE_ONCE(c->online_cpus, args->online_cpus);
	}
	c->processes = active;
	WRITE_ONCE(c->heartbeat_ns, bpf_ktime_get_ns());
	return 0;
}

static long reset_domain(__u32 domain, void *unused)
{
	struct fg_counters *c = get_counters();

	if (!c || domain >= FG_MAX_DOMAINS)
		return 1;
	c->dom[domain].preempted = 0;
	c->dom[domain].blocked = 0;
	__builtin_memset(c->usable[domain], 0, sizeof(c->usable[domain]));
	return 0;
}

static long reset_cpu(__u32 cpu, void *unused)
{
	struct fg_counters *c = get_counters();

	if (!c || cpu >= FG_MAX_CPUS)
		return 1;
	c->cpu[cpu].preempted = 0;
	c->cpu[cpu].vcpu_off = 0;
	__builtin_memset(c->queued[cpu], 0, sizeof(c->queued[cpu]));
	return 0;
}

/*
 * After the hooks are detached, nobody takes marks any more: leave the pages
 * that clients still map at zero, and dead at once (16).
 */
SEC("syscall")
int reset(void *args)
{
	struct fg_counters *c = get_counters();

	if (!c)
		return 1;
	c->heartbeat_ns = 0;
	bpf_loop(FG_MAX_DOMAINS, reset_domain, NULL, 0);
	bpf_loop(FG_MAX_CPUS, reset_cpu, NULL, 0);
	return 0;
}

#endif
