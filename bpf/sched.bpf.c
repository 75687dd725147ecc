// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A scheduler for sched_ext that knows what the preemption monitor knows: which threads are on the
 * critical path of a lock, and whether others wait for it.  An owner that others wait for goes on
 * for a little at the end of its turn; one that has lost its CPU all the same is the next of its
 * user, once; waiters of its process that spin make room.  Everything else is virtual time, of
 * users among each other and of the threads of each, as in the kernel's own examples
 * (tools/sched_ext, scx_simple and scx_flatcg).
 *
 * What an owner gets is charged like all other time, and only puts it in front of threads of its
 * own user: who claims to be an owner for ever takes nothing from others.  docs/design/sched.md.
 */
#include "vmlinux_sched.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../src/abi/protocol.h"
#include "../src/abi/scheduler.h"
#include "compat.h"
#include "critical.h"
#include "once.h"
/* `threads` and `processes` are the monitor's: the loader puts its maps in their place. */
#include "threads.h"
#include "who.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader, once. */
const volatile bool knows_owners = false;
const volatile __u64 extension_ns = FG_SCHED_EXTENSION_NS;

struct fg_sched_counts counts;
struct fg_sched_end ended;

#define entity(p)	 (((struct task_struct___scx *)(p))->scx)
#define runtime(p)	 (((struct task_struct___scx *)(p))->se.sum_exec_runtime)
#define COUNT(name)	 __sync_fetch_and_add(&counts.name, 1)
#define FIRST		 (1ULL << 50) /* virtual time that no thread is behind another: 13 days */
#define OTHERS		 (FG_SCHED_USERS - 1)
#define QUEUE_OF(number) ((__u64)(number) + 1)

/* Times wrap. */
static __always_inline bool is_before(__u64 a, __u64 b)
{
	return (__s64)(a - b) < 0;
}

/* ---- users ------------------------------------------------------------------ */

/* Threads of one user (account_of, who.h) wait in one queue, and get one part of the machine. */
static struct user {
	__u64 key;	   /* 1 << 32 | uid; 0: nobody's yet */
	__u64 vtime;	   /* that its threads have run, all together */
	__u64 now;	   /* the furthest virtual time of a thread of it that has run */
	__u64 tasks;	   /* that are counted here (struct turn) */
	__u64 first;	   /* preempted owners in its queue; a hint */
	__u64 first_index; /* the process of the last one (struct thread) */
	__u64 pad[2];
} users[FG_SCHED_USERS];

/*
 * Bit n: threads have waited in the queue of user n.  Whether some do now, the queue alone tells: a
 * thread gets into it only when sched_enqueue() has returned.
 */
__u64 used;
__u64 furthest; /* virtual time of a user whose thread has run */

/* The barrier: where the compiler knows the bound, it leaves it out, and the verifier does not. */
static __always_inline struct user *user_at(__u32 number)
{
	barrier_var(number);
	return &users[number & (FG_SCHED_USERS - 1)];
}

/*
 * The number of the user; `OTHERS` if there are too many.  An entry without threads may be taken by
 * another user; who has looked it up just then shares it until the next look-up.
 */
__noinline int find_user(__u32 uid)
{
	__u64 key = 1ULL << 32 | uid, old;
	__u32 i, n;

	for (i = 0; i < OTHERS; i++) {
		n = (uid + i) % OTHERS;
		old = READ_ONCE(user_at(n)->key);
		if (!old)
			old = __sync_val_compare_and_swap(&user_at(n)->key, 0, key);
		if (!old || old == key)
			return n;
	}
	for (i = 0; i < OTHERS; i++) {
		n = (uid + i) % OTHERS;
		old = READ_ONCE(user_at(n)->key);
		if (!READ_ONCE(user_at(n)->tasks) &&
		    __sync_val_compare_and_swap(&user_at(n)->key, old, key) == old)
			return n;
	}
	return OTHERS;
}

struct least {
	__u64 set, vtime;
	int found;
};

static long look_at(__u32 number, struct least *l)
{
	__u64 vtime = READ_ONCE(user_at(number)->vtime);

	if (l->set >> (number & (FG_SCHED_USERS - 1)) & 1 &&
	    (l->found < 0 || is_before(vtime, l->vtime)) &&
	    scx_bpf_dsq_nr_queued(QUEUE_OF(number)) > 0) {
		l->vtime = vtime;
		l->found = number;
	}
	return 0;
}

/* Of those in the set with threads that wait the one that has had least; -1: there is none. */
__noinline int least_of(__u64 set)
{
	struct least l = {.set = set, .found = -1};

	if (set)
		bpf_loop(FG_SCHED_USERS, look_at, &l, 0);
	return l.found;
}

/* ---- threads ---------------------------------------------------------------- */

enum extension { NOT_EXTENDED, EXTENDED, RELEASED };

/* What is known of each thread: written with the lock of its run queue held. */
struct turn {
	__u64 vtime;	   /* among the threads of its user */
	__u64 began;	   /* its time on CPUs up to which it has been charged */
	__u32 user;	   /* its number, counted from 1; 0: not known yet */
	__u8 owner;	   /* its last turn ended while it was critical */
	__u8 queued_first; /* it waits in front of the others */
	__u8 first;	   /* this turn is the one for which it did */
	__u8 yields;
	__u32 extended; /* enum extension */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct turn);
} turns SEC(".maps");

static __always_inline struct turn *turn_of(struct task_struct *p)
{
	return bpf_task_storage_get(&turns, p, NULL, 0);
}

static __always_inline void set_user(struct turn *t, __u32 number)
{
	if (t->user)
		__sync_fetch_and_add(&user_at(t->user - 1)->tasks, -1);
	t->user = number;
	if (number)
		__sync_fetch_and_add(&user_at(number - 1)->tasks, 1);
}

static __always_inline void leave_front(struct turn *t)
{
	if (t->queued_first && t->user)
		__sync_fetch_and_add(&user_at(t->user - 1)->first, -1);
	t->queued_first = 0;
}

/* By time on CPUs, not by what is left of a slice: the kernel refills that by itself. */
static __always_inline void charge(struct task_struct *p, struct turn *t)
{
	__u64 now = runtime(p), ran = now - t->began;
	__u32 weight = entity(p).weight;

	t->began = now;
	t->vtime += ran * SCX_WEIGHT / (weight ? weight : 1);
	if (t->user)
		__sync_fetch_and_add(&user_at(t->user - 1)->vtime, ran);
}

/* ---- owners ----------------------------------------------------------------- */

/* The slot of the thread, which must be current: its memory is read next. */
static __always_inline struct fg_slot *slot_of_current(struct task_struct *p, struct thread **of)
{
	struct fg_slot *slot;
	struct thread *t;

	if (!knows_owners || p->flags & (PF_KTHREAD | PF_EXITING) ||
	    bpf_get_current_task_btf()->pid != p->pid)
		return NULL;
	t = thread_of(p);
	if (!t || !t->slot)
		return NULL;
	slot = slot_of(t, p->pid);
	if (!slot || !is_same(p, &t->who))
		return NULL;
	*of = t;
	return slot;
}

/*
 * Do others wait for what the thread has?  Of the lock that it took last its word tells, and the
 * tail of the queue behind it (legend in src/lock/lock.h); of others nothing does, so that it is
 * assumed.  (A function for its type, too: an argument's is in the type information in full.)
 */
static __noinline bool is_waited_for(struct fg_slot *slot)
{
	__u64 pending = READ_ONCE(slot->pending);
	__u32 lock[2] = {}, id = READ_ONCE(slot->owner_id);

	if (READ_ONCE(slot->cs) || READ_ONCE(slot->sections) || READ_ONCE(slot->role) || !pending ||
	    !id || bpf_probe_read_user(lock, sizeof(lock), (void *)pending) ||
	    (lock[0] & FG_WORD_ID) != id)
		return is_critical(slot);
	return lock[0] & ~FG_WORD_ID || lock[1];
}

static __noinline bool is_owner(struct task_struct *p, bool waited_for)
{
	struct thread *t;
	struct fg_slot *slot = slot_of_current(p, &t);

	return slot && (waited_for ? is_waited_for(slot) : is_critical(slot));
}

/* It waits for a lock of its process, on a CPU, while an owner of that process waits for one. */
static __noinline bool spins_in_vain(struct task_struct *p, struct turn *turn)
{
	struct thread *t;
	struct fg_slot *slot;
	struct user *u;

	if (!turn->user)
		return false;
	u = user_at(turn->user - 1);
	if ((__s64)READ_ONCE(u->first) <= 0)
		return false;
	slot = slot_of_current(p, &t);
	return slot && t->index == READ_ONCE(u->first_index) &&
	       (READ_ONCE(slot->role) & FG_ROLE_MASK) == FG_ROLE_WAITING && !is_critical(slot);
}

/* ---- what the kernel calls ---------------------------------------------------- */

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(sched_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool is_idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, FG_SCHED_SLICE_NS, 0);
	return cpu;
}

/* Which user's it is now: an exec or setuid(2) may have made it another's. */
static __always_inline struct user *settle(struct task_struct *p, struct turn *t)
{
	__u32 number = QUEUE_OF(find_user(account_of(p->real_cred)) & (FG_SCHED_USERS - 1));
	struct user *u = user_at(number - 1);
	__u64 now = READ_ONCE(furthest);

	if (t->user != number) {
		set_user(t, number);
		t->vtime = u->now + FG_SCHED_SLICE_NS;
	}
	/* Who has not run is owed one slice at most. */
	if (is_before(t->vtime, u->now - FG_SCHED_SLICE_NS))
		t->vtime = u->now - FG_SCHED_SLICE_NS;
	if (is_before(READ_ONCE(u->vtime), now - FG_SCHED_SLICE_NS))
		WRITE_ONCE(u->vtime, now - FG_SCHED_SLICE_NS);
	return u;
}

SEC("struct_ops/enqueue")
void BPF_PROG(sched_enqueue, struct task_struct *p, __u64 flags)
{
	__u64 vtime, slice = FG_SCHED_SLICE_NS;
	struct turn *t = turn_of(p);
	struct thread *thread;
	struct user *u;
	__u32 number;
	__s32 cpu;

#ifdef FG_BROKEN_SCHED /* a test proves that the kernel ejects one that loses threads */
	if (!(p->flags & PF_KTHREAD))
		return;
#endif
	if (!t) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice, flags);
		return;
	}
	leave_front(t);
	u = settle(p, t);
	/* What the kernel itself has to do, at once, unless that thread is one that runs a lot. */
	if (p->flags & PF_KTHREAD && flags & SCX_ENQ_WAKEUP && is_before(t->vtime, u->now)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, flags);
		return;
	}
	vtime = t->vtime;
	if (t->owner) {
		t->owner = 0;
		vtime -= FIRST;
		slice = FG_SCHED_FIRST_NS;
		t->queued_first = 1;
		__sync_fetch_and_add(&u->first, 1);
		thread = thread_of(p);
		WRITE_ONCE(u->first_index, thread ? thread->index : -1ULL);
	}
	number = t->user;
	scx_bpf_dsq_insert_vtime(p, number, slice, vtime, flags);
	__sync_fetch_and_or(&used, 1ULL << ((number - 1) & (FG_SCHED_USERS - 1)));
	/* One that went idle since select_cpu(), or was not asked: it looks again. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Does somebody in this queue come before that virtual time? */
static __always_inline bool waits_before(__u32 number, __u64 vtime)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *head;
	bool before = false;

	if (!bpf_iter_scx_dsq_new(&it, QUEUE_OF(number), 0)) {
		head = bpf_iter_scx_dsq_next(&it);
		before = head && is_before(entity(head).dsq_vtime, vtime);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return before;
}

/* The thread whose turn has ended is the next one again. */
static __always_inline bool goes_on(struct task_struct *prev, __u64 set)
{
	struct turn *t = turn_of(prev);
	struct user *u;
	__u64 own;
	int least;

	if (!t || !t->user || !(entity(prev).flags & SCX_TASK_QUEUED))
		return false;
	charge(prev, t);
	if (t->yields)
		return false;
	u = user_at(t->user - 1);
	own = 1ULL << ((t->user - 1) & (FG_SCHED_USERS - 1));
	least = least_of(set & ~own);
	if ((least >= 0 && !is_before(READ_ONCE(u->vtime), READ_ONCE(user_at(least)->vtime))) ||
	    (set & own && waits_before(t->user - 1, t->vtime)))
		return false;
	t->extended = NOT_EXTENDED;
	t->first = 0;
	if (is_before(u->now, t->vtime))
		u->now = t->vtime;
	if (is_before(furthest, u->vtime))
		furthest = u->vtime;
	entity(prev).slice = FG_SCHED_SLICE_NS;
	return true;
}

/* 1: a thread of the user that is next has been found for this CPU, or there is none. */
static long try_next(__u32 times, __u64 *set)
{
	int number = least_of(*set);

	if (number < 0)
		return 1;
	number &= FG_SCHED_USERS - 1;
	if (scx_bpf_dsq_move_to_local(QUEUE_OF(number)))
		return 1;
	/* Nobody in it may use this CPU. */
	*set &= ~(1ULL << number);
	return 0;
}

SEC("struct_ops/dispatch")
void BPF_PROG(sched_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u64 set = READ_ONCE(used);

	if (!(prev && goes_on(prev, set)) && set)
		bpf_loop(FG_SCHED_USERS, try_next, &set, 0);
}

SEC("struct_ops/tick")
void BPF_PROG(sched_tick, struct task_struct *p)
{
	struct turn *t = turn_of(p);

	if (!t || least_of(READ_ONCE(used)) < 0)
		return;
	if (t->extended == EXTENDED && !is_owner(p, false)) {
		t->extended = RELEASED;
		COUNT(released);
		entity(p).slice = 0;
	} else if (t->extended) {
		return;
	} else if (!entity(p).slice) {
		if (extension_ns && !t->first && is_owner(p, true)) {
			t->extended = EXTENDED;
			COUNT(extended);
			entity(p).slice = extension_ns;
		}
	} else if (spins_in_vain(p, t)) {
		t->yields = 1;
		COUNT(yielded);
		entity(p).slice = 0;
	}
}

SEC("struct_ops/running")
void BPF_PROG(sched_running, struct task_struct *p)
{
	struct turn *t = turn_of(p);
	struct user *u;

	if (!t)
		return;
	t->began = runtime(p);
	t->extended = NOT_EXTENDED;
	t->owner = t->yields = 0;
	t->first = t->queued_first;
	if (t->first)
		COUNT(first);
	leave_front(t);
	if (!t->user)
		return;
	u = user_at(t->user - 1);
	if (is_before(u->now, t->vtime))
		u->now = t->vtime;
	if (is_before(furthest, u->vtime))
		furthest = u->vtime;
}

SEC("struct_ops/stopping")
void BPF_PROG(sched_stopping, struct task_struct *p, bool runnable)
{
	struct turn *t = turn_of(p);

	if (!t)
		return;
	charge(p, t);
	if (!runnable || !is_owner(p, false))
		return;
	COUNT(preempted);
	/* Once: what it has not finished in a turn out of turn has to wait for an ordinary one. */
	t->owner = !t->first;
}

SEC("struct_ops/yield")
bool BPF_PROG(sched_yield, struct task_struct *from, struct task_struct *to)
{
	struct turn *t = turn_of(from);

	if (t)
		t->yields = 1;
	entity(from).slice = 0;
	return false;
}

/*
 * A child begins where its parent is, and one slice later: to fork is no way out of a debt, and a
 * chain of children that each run for a moment holds up nobody.
 */
SEC("struct_ops/init_task")
__s32 BPF_PROG(sched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct turn *t = bpf_task_storage_get(&turns, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE),
		    *parent;

	if (!t)
		return -12; /* ENOMEM */
	t->began = runtime(p);
	if (!args->fork)
		return 0;
	parent = bpf_task_storage_get(&turns, bpf_get_current_task_btf(), NULL, 0);
	if (parent && parent->user) {
		struct user *u = user_at(parent->user - 1);

		set_user(t, parent->user);
		t->vtime = is_before(parent->vtime, u->now) ? u->now : parent->vtime;
		t->vtime += FG_SCHED_SLICE_NS;
	}
	return 0;
}

SEC("struct_ops/exit_task")
void BPF_PROG(sched_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct turn *t = turn_of(p);

	if (!t)
		return;
	leave_front(t);
	set_user(t, 0);
}

/* Without these, a CPU that comes or goes ends the scheduler. */
SEC("struct_ops/cpu_online")
void BPF_PROG(sched_cpu_online, __s32 cpu)
{
}

SEC("struct_ops/cpu_offline")
void BPF_PROG(sched_cpu_offline, __s32 cpu)
{
}

/* May sleep: the loader says so, since libbpf 1.1 knows no struct_ops.s. */
SEC("struct_ops/init")
__s32 BPF_PROG(sched_init)
{
	__s32 err = 0;

	for (__u32 i = 0; i < FG_SCHED_USERS && !err; i++)
		err = scx_bpf_create_dsq(QUEUE_OF(i), -1);
	return err;
}

SEC("struct_ops/exit")
void BPF_PROG(sched_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(ended.reason, sizeof(ended.reason), info->reason);
	bpf_probe_read_kernel_str(ended.message, sizeof(ended.message), info->msg);
	ended.code = info->exit_code;
	/* a full barrier: the rest is seen with it */
	__sync_lock_test_and_set(&ended.kind, (__u64)info->kind);
}

/* The names of the members are the kernel's; the loader makes the map that is attached. */
SEC(".struct_ops")
struct sched_ext_ops flexguard = {
    .select_cpu = (void *)sched_select_cpu,
    .enqueue = (void *)sched_enqueue,
    .dispatch = (void *)sched_dispatch,
    .tick = (void *)sched_tick,
    .running = (void *)sched_running,
    .stopping = (void *)sched_stopping,
    .yield = (void *)sched_yield,
    .init_task = (void *)sched_init_task,
    .exit_task = (void *)sched_exit_task,
    .cpu_online = (void *)sched_cpu_online,
    .cpu_offline = (void *)sched_cpu_offline,
    .init = (void *)sched_init,
    .exit = (void *)sched_exit,
};
