// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The preemption monitor.  At each context switch it asks whether the thread
 * that leaves the CPU is on the critical path of a lock, and keeps two counts
 * of such threads: `p`, runnable but off CPU, and `b`, asleep (marks.h).  It also
 * writes back to each thread's slot whether the thread runs, so that a waiter can
 * look at one owner instead of at everybody.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "../src/abi/protocol.h"
#include "marks.h"
#include "monitor_types.h"
#include "who.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A bound thread.  Written by the CPU that switches it, but for `mark` (marks.h). */
struct thread {
	__u64 mark;
	__u32 index; /* fg_owner.index; stays with a process for life */
	__u32 slot;  /* 0: not bound */
	__u32 domain;
	__u32 state;   /* what slot.state should be; the slot itself is the client's to scribble on */
	__u32 changes; /* incremented when it stops running, or stops sleeping */
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

/* What the daemon asks `prove` and `identify`, and hears. */
__u32 peer_sock;    /* descriptor of the daemon: the accepted connection */
__u32 peer_account; /* whose quota it is (account_of) */
__u32 prove_write;  /* 1: write fg_owner.who */
__u32 proved;	    /* 1: a thread is who it was at connect(); and who has been written, if that was asked for */

/* ... and who that is, as struct fg_who. */
__u64 proved_who[sizeof(struct fg_who) / sizeof(__u64)];

/* Registered processes; nothing to do at all while it is 0.  Written by the loader. */
__u64 active;

/* Set by the loader, once. */
const volatile bool mcs_test = false; /* judge threads with role MCS by their queue */
const volatile bool count_at_once = false; /* who makes room for a kernel thread is preempted */

/*
 * Compiled twice.  For kernels before 6.4 threads get their storage before they are
 * switched (on_fork, audit), and nothing is deferred, since 6.1 cannot look up a task by
 * its pid.  Not a variable: libbpf would look for the missing functions in
 * modules, which takes CAP_SYS_ADMIN.
 */
#ifdef EARLY_STORAGE
#define early_storage true
#define bpf_task_from_pid(pid) ((struct task_struct *)NULL)
#define bpf_task_release(task) ((void)(task))
#else
#define early_storage false
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
#endif

/* Each CPU's own. */
static struct {
	__u64 deferred; /* pid of the thread that waits for a kernel thread to leave this CPU again */
	__u64 switches; /* seen; some are timed */
	__u64 pad[6];
} cpus[FG_MAX_CPUS];

/* ---- threads, slots -------------------------------------------------------- */

/*
 * The pointer test costs a load where the helper costs a call: most tasks of a
 * machine have no storage of any kind.
 */
static __always_inline bool has_storage(struct task_struct *task)
{
	return !bpf_core_field_exists(task->bpf_storage) || task->bpf_storage;
}

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

static __always_inline __u32 cpu_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return task->wake_cpu;
}

/* A throttled task is queued nowhere: it waits for its quota, not for a CPU. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	return bpf_core_field_exists(task->throttled) && task->throttled;
}

/* Whether a thread that leaves its CPU would have used it any longer. */
static __always_inline bool wants_cpu(struct task_struct *prev, bool preempt)
{
	return (preempt || !prev->__state) && !is_throttled(prev);
}

static __always_inline __u64 rseq_area(struct task_struct *task)
{
	struct task_struct___rseq_pointer *by_pointer = (void *)task;
	struct task_struct___rseq_data *by_data = (void *)task;
	__u64 area = 0;

	/* Not by a plain load: arithmetic on what that gives is refused. */
	if (bpf_core_field_exists(by_data->rseq.usrptr))
		bpf_core_read(&area, sizeof(area), &by_data->rseq.usrptr);
	else if (bpf_core_field_exists(by_pointer->rseq))
		bpf_core_read(&area, sizeof(area), &by_pointer->rseq);
	return area;
}

/*
 * Of a process that said hello and is somebody else by now (a daemon that has given up root): its
 * library hears in slot 0 that another hello is due.  One thread alone that has other credentials is not the
 * process.
 */
static __noinline int note_end(struct task_struct *task, struct fg_owner *owner)
{
	struct task_struct *leader = task->group_leader;
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
		note_end(task, owner);
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
	t = bpf_task_storage_get(&threads, task, NULL, early_storage ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
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

static __always_inline __u32 read_user_u32(__u64 address)
{
	__u32 value = 0;

	/* A fault leaves 0: unmapped memory is nobody's lock (case 19). */
	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* The holder test that is documented at struct fg_mcs_node: three looks into the queue. */
__noinline int owns_mcs_lock(__u64 tail, __u64 node)
{
	struct fg_mcs_node me, next;
	__u64 last;

	if (bpf_probe_read_user(&me, sizeof(me), (void *)node) || me.status == FG_MCS_WAITING ||
	    bpf_probe_read_user(&last, sizeof(last), (void *)tail))
		return 0;
	if (last == node)
		return 1;
	return me.next && !bpf_probe_read_user(&next, sizeof(next), (void *)me.next) && next.status == FG_MCS_WAITING;
}

/* The test that is documented at struct fg_slot.  The slot's thread is current. */
static __always_inline bool is_critical(struct fg_slot *slot)
{
	__u64 pending = READ_ONCE(slot->pending);
	__u32 role = READ_ONCE(slot->role);
	__u32 id = READ_ONCE(slot->owner_id);
	__u32 state;

	if (mcs_test && role == FG_ROLE_MCS)
		return owns_mcs_lock(pending, READ_ONCE(slot->node));
	if (READ_ONCE(slot->cs) || READ_ONCE(slot->sections))
		return true;
	if (role == FG_ROLE_LINKING || role == FG_ROLE_HEAD)
		return true;
	/* No word is owned by id 0: that is what a free one holds. */
	if (pending && id && (read_user_u32(pending) & FG_WORD_ID) == id)
		return true;
	if (role != FG_ROLE_WAITING)
		return false;
	state = read_user_u32(READ_ONCE(slot->node)) & FG_NODE_STATE_MASK;
	return state == FG_NODE_GRANTED || state == FG_NODE_HEAD;
}

/* ---- context switch -------------------------------------------------------- */

static __always_inline void switched_out(struct task_struct *prev, struct task_struct *next, bool preempt,
					 __u32 cpu)
{
	struct thread *t = thread_of(prev);
	struct fg_slot *slot = NULL;
	bool runnable;
	__u64 mark;

	if (t) {
		/* It ran until now, so a mark is left over from a switch-in that we did not see (20). */
		if (t->mark) {
			clear_mark(&t->mark);
			count_missed();
		}
		slot = slot_of(t, prev->pid);
		/* Somebody else by now: nothing more of it is read, nor told. */
		if (slot && !is_same(prev, &t->who)) {
			WRITE_ONCE(slot->state, FG_STATE_UNKNOWN);
			slot = NULL;
		}
	}
	if (!slot) {
		if (t) {
			t->slot = 0;
			t->state = FG_STATE_UNKNOWN;
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
	if (runnable)
		slot->involuntary++;
	if (!is_critical(slot))
		return;

	if (runnable && next->flags & PF_KTHREAD && !early_storage && !count_at_once && cpu < FG_MAX_CPUS) {
		/* One in five comes straight back (14): wait who runs here next. */
		set_mark(&t->mark, make_mark(MARK_DEFER, cpu, t->domain, 0));
		cpus[cpu].deferred = prev->pid;
		return;
	}
	mark = runnable ? make_mark(MARK_P, cpu, t->domain, groups_of(prev)) :
			  make_mark(MARK_B, cpu, t->domain, 0);
	set_mark(&t->mark, mark);
	count_event(mark);
	if (runnable)
		slot->preempted++;
	else
		slot->blocked++;
}

/* An exiting thread takes no more locks: its CPU is as good as free. */
static __always_inline bool displaces(struct task_struct *next, struct task_struct *prev, bool preempt)
{
	return prev->tgid == next->tgid && !(prev->flags & PF_EXITING) && wants_cpu(prev, preempt);
}

static __always_inline void switched_in(struct task_struct *next, struct task_struct *prev, bool preempt,
					__u32 cpu)
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
	}
}

/* The thread did not come straight back: count it, on the CPU that it is queued on now. */
static __always_inline void promote(struct thread *t, struct task_struct *task, __u64 old, __u32 cpu)
{
	__u64 mark = make_mark(MARK_P, cpu, mark_domain(old), groups_of(task));
	struct fg_slot *slot;

	if (!swap_mark(&t->mark, old, mark) || mark_kind(old) != MARK_DEFER)
		return;
	count_event(mark);
	slot = slot_of(t, task->pid);
	if (slot)
		__sync_fetch_and_add(&slot->preempted, 1);
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
		if (old == make_mark(MARK_DEFER, cpu, mark_domain(old), 0))
			promote(t, task, old, cpu);
	}
	bpf_task_release(task);
	return 0;
}

static __always_inline void switched(bool preempt, struct task_struct *prev, struct task_struct *next, __u32 cpu)
{
	/* An exiting holder is never switched in again, so nothing would undo its mark (5). */
	if (!(prev->flags & (PF_KTHREAD | PF_EXITING)))
		switched_out(prev, next, preempt, cpu);
	if (next->flags & PF_KTHREAD)
		return;
	if (!early_storage && cpu < FG_MAX_CPUS && cpus[cpu].deferred)
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
	__u64 before, start = 0;
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
	if (!t || t->state != FG_STATE_SLEEP || is_throttled(task))
		return 0;
	cpu = cpu_of(task);
	t->state = FG_STATE_RUNNABLE;
	t->changes++;
	old = READ_ONCE(t->mark);
	if (mark_kind(old) == MARK_B)
		swap_mark(&t->mark, old, make_mark(MARK_P, cpu, mark_domain(old), groups_of(task)));
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
	if (mark_kind(old) == MARK_P || mark_kind(old) == MARK_DEFER)
		promote(t, task, old, dest);
	slot = slot_of(t, task->pid);
	if (slot)
		WRITE_ONCE(slot->cpu, dest);
	return 0;
}

/*
 * Before 6.4, storage that is made in sched_switch comes from kmalloc, which may wake a
 * thread and so take the run queue's lock, which is held there.  On such a
 * kernel each thread of a registered process gets its storage when it is created, and those that
 * are there already in the audit that follows the registration.
 */
static __always_inline void make_storage(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;

	if (has_storage(leader) && bpf_task_storage_get(&owners, leader, NULL, 0))
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Loaded with EARLY_STORAGE only. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (active && parent->tgid == child->tgid)
		make_storage(child);
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

/* ---- run by the daemon ----------------------------------------------------- */

enum odd {
	ODD_NOT = 0,
	ODD_RUNS = 1,	  /* on CPU, though counted or written down as off it */
	ODD_RUNS_NOT = 2, /* the other way round */
};

/*
 * Looks for threads that are not what their last event says (20).  Seeing one
 * once proves nothing: the hooks run a moment before the switch itself.  Seeing
 * the same again, in a later audit and without an event in between, does.
 */
SEC("iter/task")
int audit(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	enum odd odd = ODD_NOT, before;
	struct fg_slot *slot;
	struct thread *t;
	__u64 mark;

	if (!task)
		return 0;
	t = thread_of(task);
	if (!t) {
		if (early_storage && !(task->flags & (PF_EXITING | PF_KTHREAD)))
			make_storage(task);
		return 0;
	}
	mark = READ_ONCE(t->mark);
	if (task->flags & PF_EXITING)
		odd = mark ? ODD_RUNS : ODD_NOT;
	else if (task->on_cpu)
		odd = mark || (t->slot && t->state != FG_STATE_ON) ? ODD_RUNS : ODD_NOT;
	else if (t->slot && t->state == FG_STATE_ON)
		odd = ODD_RUNS_NOT;
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
		/* It was not current when it left, so whether it is critical cannot be told any more. */
		t->state = odd == ODD_RUNS ? FG_STATE_ON : task->__state ? FG_STATE_SLEEP : FG_STATE_RUNNABLE;
		slot = slot_of(t, task->pid);
		if (slot) {
			WRITE_ONCE(slot->state, t->state);
			WRITE_ONCE(slot->cpu, cpu_of(task));
		}
	} else if (mark_kind(mark) == MARK_DEFER) {
		promote(t, task, mark, mark_cpu(mark));
	} else if (mark_kind(mark) == MARK_P && t->audits >= FG_AUDIT_CAP) {
		swap_mark(&t->mark, mark, MARK_NONE);
	} else if (mark_kind(mark) == MARK_P && mark_groups(mark) != groups_of(task)) {
		/* Its affinity or its cpuset was changed while it waits. */
		swap_mark(&t->mark, mark, make_mark(MARK_P, mark_cpu(mark), mark_domain(mark), groups_of(task)));
	}
	return 0;
}

/*
 * Run over the threads of a process that said hello: is one of them still who it was at connect()?
 * Then, and only then, the process is one that may be looked at (who.h).
 */
SEC("iter/task")
int prove(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *leader;
	struct fg_owner *owner;
	struct fg_who who;
	__u32 barrier = 0;

	if (!task || proved || task->flags & PF_EXITING)
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
		/* A full barrier: who sees that it is known sees the rest. */
		__sync_lock_test_and_set(&owner->who.known, FG_KNOWN);
	}
	who.known = FG_KNOWN;
	__builtin_memcpy(proved_who, &who, sizeof(proved_who));
	proved = 1;
	return 0;
}

SEC("syscall")
int identify(void *args)
{
	__u64 cred = peer_cred(peer_sock);

	if (!cred)
		return 1;
	peer_account = account_of((const struct cred *)cred);
	return 0;
}

/*
 * The ids of all slot arrays that the kernel still has: somebody may have one mapped, or its descriptor,
 * long after the process that it was made for (src/monitor/arrays.c).
 */
SEC("iter/bpf_map")
int arrays(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	__u32 id;

	if (!map || map->map_type != BPF_MAP_TYPE_ARRAY || map->value_size != sizeof(struct fg_slot))
		return 0;
	id = map->id;
	bpf_seq_write(ctx->meta->seq, &id, sizeof(id));
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
	}
	c->processes = active;
	WRITE_ONCE(c->heartbeat_ns, bpf_ktime_get_ns());
	return 0;
}

static long reset_domain(__u32 domain, void *unused)
{
	struct fg_counters *c = get_counters();
	int i;

	if (!c || domain >= FG_MAX_DOMAINS)
		return 1;
	c->dom[domain].p = 0;
	c->dom[domain].b = 0;
	for (i = 0; i < FG_MAX_CPUS; i++)
		WRITE_ONCE(c->queued[domain][i], 0);
	for (i = 0; i < FG_CPU_GROUPS; i++)
		WRITE_ONCE(c->usable[domain][i], 0);
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
	int i;

	if (!c)
		return 1;
	c->heartbeat_ns = 0;
	bpf_loop(FG_MAX_DOMAINS, reset_domain, NULL, 0);
	for (i = 0; i < FG_MAX_CPUS; i++)
		c->cpu[i].p = 0;
	return 0;
}
