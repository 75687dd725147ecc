// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `flexguard kernel profile`: waits for the kernel's own locks, by the tracepoints
 * lock:contention_begin and _end, which are in the slow path of each kind of lock since 5.19
 * (16edd9b511a1, "locking: Add lock contention tracepoints").  It runs there with any locks held,
 * in interrupts and NMIs too: it takes no lock, and uses nothing that takes one
 * (src/abi/contention.h).
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../src/abi/contention.h"
#include "contention_lock.h"
#include "contention_tables.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* a wait on this CPU that began so long ago has lost its end; not varied */
#define FG_SPIN_LEFT_NS 1000000000ull

/* Set by the loader, once. */
const volatile __u32 by = FG_BY_TASK;
const volatile __u32 only_tgid = 0; /* 0: all */

/* ---- the begin of a wait ------------------------------------------------------- */

static __always_inline __u64 waiting_key(__u64 lock)
{
	return mix(mix(lock) ^ (__u32)bpf_get_current_pid_tgid()) | 1;
}

static __always_inline __u64 hash_of_stack(const __u64 *stack)
{
	__u64 hash = 0;

	for (int i = 0; i < FG_STACK_FRAMES; i++)
		hash = mix(hash ^ stack[i]);
	return hash;
}

/* Of this CPU. */
static __always_inline struct spins *get_spins(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&spinning, &zero);
}

static __always_inline void begin_wait(struct fg_waiting *w, void *ctx, void *lock, __u32 flags)
{
	long size;

	w->class = class_of(flags);
	w->role = role_of((__u64)lock);
	w->read = !!(flags & FG_LCB_READ);
	if (by == FG_BY_TASK) {
		w->id = (__u32)bpf_get_current_pid_tgid();
	} else if (by == FG_BY_CGROUP) {
		w->id = bpf_get_current_cgroup_id();
	} else if (by == FG_BY_OWNER) {
		look_at_owner(w, lock, flags);
	} else {
		size = bpf_get_stack(ctx, w->stack, sizeof(w->stack), 0);
		for (int i = 0; i < FG_STACK_FRAMES; i++)
			if (size < (i + 1) * 8)
				w->stack[i] = 0;
		w->id = hash_of_stack(w->stack);
	}
	w->start = bpf_ktime_get_ns();
}

/*
 * Unrolled: clang may let the pointer begin before the first element, which the verifier of 7.3
 * refuses.
 */
static __always_inline struct fg_waiting *find_spin(struct spins *spins, __u64 lock)
{
#pragma unroll
	for (int i = 0; i < FG_NESTED_SPINS; i++)
		if (spins->spin[i].key == lock)
			return &spins->spin[i];
	return NULL;
}

/*
 * An interrupt may come between any two instructions, and wait as well.  What is left over from an
 * end that the kernel kept from us (it does not run a program inside itself) is taken by the
 * next wait for the same lock, or after a second.
 */
static __always_inline struct fg_waiting *take_spin(struct spins *spins, __u64 lock)
{
	struct fg_waiting *w;
	__u64 now;

	w = find_spin(spins, lock);
	if (w)
		return w;
#pragma unroll
	for (int i = 0; i < FG_NESTED_SPINS; i++)
		if (!__sync_val_compare_and_swap(&spins->spin[i].key, 0, lock))
			return &spins->spin[i];
	now = bpf_ktime_get_ns();
#pragma unroll
	for (int i = 0; i < FG_NESTED_SPINS; i++)
		if (now - spins->spin[i].start > FG_SPIN_LEFT_NS) {
			spins->spin[i].key = lock;
			return &spins->spin[i];
		}
	return NULL;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_begin, void *lock, __u32 flags)
{
	struct made_waiting made = {0};
	struct fg_waiting *w = NULL;
	struct spins *spins;
	__u64 key;

	if (only_tgid && bpf_get_current_pid_tgid() >> 32 != only_tgid)
		return 0;
	if ((flags & ~(FG_LCB_READ | FG_LCB_WRITE)) == FG_LCB_SPIN) {
		spins = get_spins();
		if (!spins)
			return 0;
		w = take_spin(spins, (__u64)lock);
		if (!w) {
			COUNT(nested);
			return 0;
		}
	} else {
		key = waiting_key((__u64)lock);
		/* One in front of its row may have been given back since. */
		w = FIND(waiting, FG_WAITING_ROWS, key, false, made);
		if (!w)
			w = FIND(waiting, FG_WAITING_ROWS, key, true, made);
		if (!w) {
			COUNT(full_waiting);
			return 0;
		}
		/*
		 * A mutex says it each time that it spins on its owner, and that it goes to sleep:
		 * at first, and again when it is woken and another was quicker.  That is one wait.
		 */
		if (!made.new && flags & FG_LCB_MUTEX)
			return 0;
	}
	COUNT(begun);
	begin_wait(w, ctx, lock, flags);
	return 0;
}

/* ---- its end --------------------------------------------------------------------- */

/* By the new owner, which is alone with the lock here. */
static __always_inline void handed_over(struct fg_contended_lock *l, __u64 now)
{
	__u64 node = 1 + (__u64)bpf_get_numa_node_id();

	if (l->last) {
		l->handovers++;
		if (l->last != node) {
			l->across++;
			l->run = 0;
		}
	}
	l->last = node;
	l->run++;
	if (l->run > l->batch)
		l->batch = l->run;
	l->held_since = now;
	l->holder = 1 + (__u64)(__u32)bpf_get_current_pid_tgid();
}

static __always_inline void count_waiter(const struct fg_waiting *w, __u64 lkey, __u64 ns,
					 bool failed)
{
	/* A thread's number may have been one of another process, and be one again. */
	__u64 tgid = by == FG_BY_TASK  ? bpf_get_current_pid_tgid() >> 32 :
		     by == FG_BY_OWNER ? w->owner_tgid :
					 0;
	__u64 key = mix(lkey ^ mix((w->id ^ tgid << 32) + 1)) | 1;
	struct made_waiter made = {0};
	struct fg_contended_waiter *r = FIND(waiters, FG_WAITER_ROWS, key, true, made);

	if (!r) {
		COUNT(full_waiters);
		return;
	}
	if (made.new) {
		r->lock_key = lkey;
		r->id = w->id;
		if (by == FG_BY_CALLER)
			for (int i = 0; i < FG_STACK_FRAMES; i++)
				r->stack[i] = w->stack[i];
		r->tgid = tgid;
		if (by == FG_BY_TASK)
			bpf_get_current_comm(r->comm, sizeof(r->comm));
		if (by == FG_BY_OWNER)
			__builtin_memcpy(r->comm, w->owner_comm, sizeof(r->comm));
	}
	add_wait(&r->w, ns, w->read, failed);
}

static __always_inline void end_wait(const struct fg_waiting *w, __u64 lock, bool failed)
{
	__u64 now = bpf_ktime_get_ns(), ns = now - w->start, key = lock_key(lock, w->class);
	struct made_lock made = {0};
	struct fg_contended_lock *l = FIND(locks, FG_LOCK_ROWS, key, true, made);

	COUNT(ended);
	if (!l) {
		COUNT(full_locks);
		return;
	}
	if (made.new) {
		l->lock = lock;
		l->class = w->class;
		l->role = w->role;
	}
	add_wait(&l->w, ns, w->read, failed);
	ADD(l->buckets[bucket_of(ns)], 1);
	if (!failed && !w->read && w->class != FG_CLASS_SEMAPHORE)
		handed_over(l, now);
	count_waiter(w, key, ns, failed);
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_end, void *lock, int ret)
{
	struct made_waiting made = {0};
	struct fg_waiting *w = NULL;
	struct spins *spins = get_spins();
	__u64 key;

	if (!spins)
		return 0;
	w = find_spin(spins, (__u64)lock);
	if (!w) {
		key = waiting_key((__u64)lock);
		w = FIND(waiting, FG_WAITING_ROWS, key, false, made);
	}
	if (!w) {
		if (!only_tgid)
			COUNT(unmatched);
		return 0;
	}
	end_wait(w, (__u64)lock, ret != 0);
	*(volatile __u64 *)&w->key = 0;
	return 0;
}

/* ---- holds ----------------------------------------------------------------------- */

/* These rows are not given back: behind a free one there is none of this key. */
static __always_inline struct fg_contended_lock *find_lock(__u64 key)
{
	for (__u32 i = 0; i < FG_CONTENTION_PROBES; i++) {
		__u32 at = ((__u32)key + i) % FG_LOCK_ROWS;
		struct fg_contended_lock *l = bpf_map_lookup_elem(&locks, &at);
		__u64 was = l ? *(volatile __u64 *)&l->key : 0;

		if (!was)
			return NULL;
		if (was == key)
			return l;
	}
	return NULL;
}

static __always_inline void let_go(__u64 lock, __u32 class)
{
	struct fg_contended_lock *l = find_lock(lock_key(lock, class));
	__u64 ns;

	/* Somebody else who got it without a wait has not been seen to take it. */
	if (!l || l->holder != 1 + (__u64)(__u32)bpf_get_current_pid_tgid())
		return;
	ns = bpf_ktime_get_ns() - l->held_since;
	l->holder = 0;
	ADD(l->holds, 1);
	ADD(l->hold_ns, ns);
	raise(&l->hold_max_ns, ns);
}

/*
 * 7.2 and later, of locks that sleep (of spinlocks by an option of the build): the owner releases
 * it, and others wait.
 */
SEC("tp_btf/contended_release")
int BPF_PROG(on_release, void *lock)
{
	for (__u32 c = 0; c < FG_CLASSES; c++)
		let_go((__u64)lock, c);
	return 0;
}

/* As a number: with the pointer, which has a type here, the verifier allows no arithmetic. */
static __always_inline __u64 first_argument(void *ctx)
{
	__u64 value = 0;

	bpf_get_func_arg(ctx, 0, &value);
	return value;
}

/*
 * Where all holds behind a wait are asked for (--holds), and where the kernel tells of none: every
 * release of a lock that sleeps.  With PREEMPT_RT these are rt_mutexes inside, and begin with one.
 * Not those of spinlocks: what runs behind each program (rcu_read_unlock()) may wake somebody, and
 * the lock that is let go may be the one that this takes.
 */
SEC("fentry/mutex_unlock")
int BPF_PROG(on_mutex_unlock)
{
	__u64 lock = first_argument(ctx);

	let_go(lock, FG_CLASS_MUTEX);
	let_go(lock, FG_CLASS_RT);
	return 0;
}

static __always_inline int let_go_writer(void *ctx)
{
	__u64 lock = first_argument(ctx);

	let_go(lock, FG_CLASS_RWSEM);
	let_go(lock, FG_CLASS_RT);
	return 0;
}

SEC("fentry/up_write")
int BPF_PROG(on_up_write)
{
	return let_go_writer(ctx);
}

/* Goes on as a reader. */
SEC("fentry/downgrade_write")
int BPF_PROG(on_downgrade_write)
{
	return let_go_writer(ctx);
}

SEC("fentry/percpu_up_write")
int BPF_PROG(on_percpu_up_write)
{
	let_go(first_argument(ctx), FG_CLASS_PERCPU_RWSEM);
	return 0;
}
