/* SPDX-License-Identifier: MIT OR GPL-2.0-only OR BSD-2-Clause */
/*
 * The ABI between a process (src/lock, src/runtime), the monitor (src/monitor) and
 * the eBPF program (bpf/).  Three things are shared, each with one direction:
 *
 *   slot array   the process writes what its threads do, the monitor writes
 *                back whether each of them runs.  One array per process; no
 *                other process can see it.
 *   counters     written by the eBPF program only, read-only for everyone.
 *   socket       one SEQPACKET exchange: hello -> welcome + two descriptors.
 *
 * Everything here is a hint.  A process that reads nonsense from either page
 * may wait in the wrong way; it never enters a critical section wrongly and
 * never waits for ever (docs/design/lock.md).
 */
#ifndef FG_PROTOCOL_H
#define FG_PROTOCOL_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define FG_ABI_VERSION 5
#define FG_CACHE_LINE \
	64 /* of x86-64 and most arm64; where lines are longer, neighbours share one */

/* ---- lock word ----------------------------------------------------------
 *   bits 0..27  id of the owner, 0 = nobody holds it.  The monitor compares
 *               it with fg_slot.owner_id and looks at no other bit.
 *   bit 28      FG_WORD_HANDOFF (legend of the four: src/lock/lock.h)
 *   bit 29      FG_WORD_DESIGNATED
 *   bit 30      FG_WORD_SPINNER
 *   bit 31      FG_WORD_WAITERS
 */
#define FG_WORD_ID	   0x0fffffffu
#define FG_WORD_HANDOFF	   0x10000000u
#define FG_WORD_DESIGNATED 0x20000000u
#define FG_WORD_SPINNER	   0x40000000u
#define FG_WORD_WAITERS	   0x80000000u

/* What a thread does in the queue of the lock that it waits for (fg_slot.role, in FG_ROLE_MASK). */
enum fg_role {
	FG_ROLE_NONE = 0,
	FG_ROLE_LINKING =
	    1, /* from joining the tail to being linked, or taking the word: critical */
	FG_ROLE_WAITING = 2, /* critical iff *fg_slot.node is GRANTED or HEAD */
	FG_ROLE_HEAD = 3,    /* the next owner: critical */
	/* in the queue of an MCS lock: monitors told to do so judge by that (fg_mcs_node) */
	FG_ROLE_MCS = 4,
};

/*
 * The BPF Hybrid Lock's holder test (2023, section IV.C), which a monitor can be asked for: with
 * role MCS, `node` is the address of one of these and `pending` that of the tail of its queue, and
 * the thread is critical iff
 *	!waiting && (tail == node || (next && next->waiting))
 */
struct fg_mcs_node {
	__u64 next;
	__u32 status;
};
#define FG_MCS_WAITING 0u

/*
 * Above the mask, the role of the owner of a lock that can switch names a slot of its process: if
 * the owner is preempted, the eBPF program stores 1 to that slot's `mode`, which is the lock's and
 * not the slot's thread's.  0: none. This is the switch of the BPF Hybrid Lock (2023, section IV.B)
 * as far as the program goes: it asks, and a waiter compares and swaps the lock's state, which no
 * other process may write.
 */
#define FG_ROLE_MASK 0xffu
#define FG_ROLE_MODE 8 /* bits from here on */

/* State of a queue node: incarnation << 3 | one of these (src/lock/queue.c). */
enum fg_node_state {
	FG_NODE_FREE = 0,
	FG_NODE_WAITING = 1,
	FG_NODE_GRANTED = 2,
	FG_NODE_HEAD = 3,
	FG_NODE_LEFT = 4,
	FG_NODE_KEPT = 5,	/* of the owner, which is critical by what it says of its locks */
	FG_NODE_LEFT_TWICE = 6, /* no longer there when it was given the lock */
};
#define FG_NODE_STATE_MASK 7u

/* Where a thread is, as the monitor saw it last (fg_slot.state). */
enum fg_state {
	FG_STATE_UNKNOWN = 0,  /* no monitor, or the thread has not been switched yet */
	FG_STATE_ON = 1,       /* on a CPU */
	FG_STATE_RUNNABLE = 2, /* wants a CPU and has none: preempted */
	FG_STATE_SLEEP = 3,    /* sleeps, is stopped, traced, frozen or throttled */
	FG_STATE_DEAD = 4,
};

/*
 * What the threads count in their slots, on slow paths only, for `flexguard top`.
 * The name is that of abi/stats.h.  A count belongs to the slot, not to the thread
 * that has it: it only grows, also when the slot changes hands, and wraps.  The
 * monitor adds up the differences of each slot, more often than one can wrap.
 */
/* clang-format off */
#define FG_SLOT_STATS_TABLE(X) \
	X(CONTENDED) X(SPUN) X(PARKS) X(WAKEUPS) X(PREEMPTIONS) X(BLOCKED_NS) X(COND_WAITS)
/* clang-format on */
enum fg_slot_stat {
#define X(id) FG_SLOT_##id,
	FG_SLOT_STATS_TABLE(X)
#undef X
	    FG_SLOT_STATS
};
#define FG_SLOT_NS 1000u /* a unit of BLOCKED_NS here is a microsecond */

/*
 * One thread.  Two cache lines, because they have two writers: the first
 * changes at every lock operation, the second at every context switch, and
 * waiters poll the second.
 *
 * A switched-out thread is critical (on the critical path of some lock) iff
 *	cs > 0 || sections > 0
 *	|| role == LINKING || role == HEAD
 *	|| (role == WAITING && (*(u32 *)node & FG_NODE_STATE_MASK) is GRANTED or HEAD)
 *	|| (role is another && pending != 0 && (*(u32 *)pending & FG_WORD_ID) == owner_id)
 *
 * One that waits in a queue takes the word as LINKING, so that at a switch nobody has to read the
 * word, which all want, for one that only waits.
 */
struct fg_slot {
	/* Written by the thread with plain stores. */
	/* address of the lock word it is taking, holding or releasing; 0, also while it sleeps */
	__u64 pending;
	__u64 node;	/* address of the state word of its queue node; valid iff role == WAITING */
	__u32 cs;	/* locks that it holds beside the pending one */
	__u32 role;	/* enum fg_role */
	__u32 acq_cpu;	/* CPU on which it last took a lock; the fallback without a monitor */
	__u32 sections; /* sections that it is in beside those of mutexes: read locks, spinlocks */
	/* 1: others wait, or will, at a barrier for this thread (the process's own business) */
	__u32 participant;
	__u32 stats[FG_SLOT_STATS];

	/* Written by the eBPF program, but where another word is said. */
	__u32 state;	 /* enum fg_state */
	__u32 cpu;	 /* the CPU that it runs, or is queued, on */
	__u32 owner_id;	 /* by the process when it hands out the slot; what lock words hold */
	__u32 bound;	 /* kernel's id of the thread bound to this slot: detects re-use */
	__u64 preempted; /* times switched out, runnable, while critical */
	__u64 blocked;	 /* times it went to sleep while critical */
	/* times switched out while runnable, critical or not; these three as stats[] */
	__u64 involuntary;
	/* 1: it took its CPU from a thread of its own process that wanted to go on */
	__u32 displaces;
	/*
	 * slot 0 only: 1: other credentials than at the hello; no thread is bound before another
	 */
	__u32 ended;
	/* FG_ROLE_MODE: 1: a lock should be switched; the process stores 0 when it has been */
	__u32 mode;
	/*
	 * Not 0: it has waited for its CPU, and took it from a thread of another process that
	 * wanted to go on; when, in units of 2^FG_SHARES_LOG2 ns, low bits.  0 when it has lost it
	 * again; the process stores 0 when it has made use of it.
	 */
	__u32 shares_since;
	__u32 turn; /* how long its last such turn was, until it was preempted; same units */
	__u32 unused1;
} __attribute__((aligned(FG_CACHE_LINE)));

#define FG_SHARES_LOG2 10 /* 1,024 ns: of shares_since and turn */

/*
 * Slot 0 is no thread's.  Its first line is the process's own: what threads count that
 * have no slot in the array, and how much of the array the monitor has to look at.
 */
struct fg_slot_rest {
	__u64 stats[FG_SLOT_STATS]; /* units of fg_slot.stats; these do not wrap */
	__u32 highest;		    /* slot ever handed out */
	__u32 unused;
};

/*
 * A process's slot array comes in pieces, 64 KB each: one with the first welcome, the others as it
 * has more threads.  Slot n is number n % FG_PIECE of piece n / FG_PIECE.
 */
#define FG_PIECE  512u
#define FG_PIECES 8u

/* ---- counters: one read-only page set for all processes ------------------ */

#define FG_MAX_DOMAINS 64 /* users beyond are refused (process.c); not varied */
#ifndef FG_MAX_CPUS
#define FG_MAX_CPUS 512 /* those above count as none; not varied */
#endif
#define FG_DOMAIN_ALL 0 /* the paper's system-wide counter */

/*
 * Words that waiters poll have lines in which nothing else is written: each store there takes the
 * line from all CPUs that wait.
 */

/* Of a domain. */
struct fg_count {
	/* critical threads that are runnable but off CPU now; polled */
	__u32 preempted __attribute__((aligned(FG_CACHE_LINE)));
	/* critical threads that sleep now */
	__u32 blocked __attribute__((aligned(FG_CACHE_LINE)));
};

/* Of a CPU, and written by it alone, mostly.  Who waits for the thread on it polls `vcpu_off`. */
struct fg_cpu_count {
	__u32 preempted; /* critical threads that are queued on it now */
	__u32 vcpu_off;	 /* 1: the hypervisor has taken it off (vcpu.h); 0 from an older monitor */
	__u64 total_preempted; /* critical threads that lost it since the monitor started */
	__u64 total_blocked;   /* and that went to sleep on it */
} __attribute__((aligned(FG_CACHE_LINE)));

/*
 * Where a CPU is: two with one value share a last-level cache, two with one FG_NEAR_NODE a NUMA
 * node.  0 of all: not known, or all are alike, as those of which no two share a cache.  A hint, as
 * everything here.
 */
enum fg_near {
	FG_NEAR_CACHE = 0x1f, /* caches of the node are numbered, modulo 32 */
	FG_NEAR_NODE = 0xe0,  /* nodes, modulo 8 */
};

/*
 * A domain is a set of processes that believe each other (--domains).  Inside
 * one, a waiter on CPU c needs room to be made for the threads that could use c:
 *	dom[d].preempted		those that may run anywhere
 *	usable[d][c >> shift]	those with an affinity or cpuset of which c is part
 *	queued[c][d]		of both, those that wait for c at this moment
 * dom[FG_DOMAIN_ALL] counts all threads of all domains, unless there is `domains_only`; cpu[] does
 * always.
 *
 * The rows of queued[] are CPUs, so that no two share a line. Those of usable[] are domains: a
 * thread that may use half of the CPUs is counted in half of its row, under the lock of a run
 * queue, and that is one line or two.
 */
#define FG_CPU_GROUPS 32 /* up to so many CPUs, each is a group of its own (cpu_shift is 0) */

struct fg_counters {
	__u64 generation;   /* of the monitor; changes when it restarts */
	__u64 heartbeat_ns; /* CLOCK_MONOTONIC of its last sign of life, every FG_HEARTBEAT_NS */
	__u64 cpu_shift;    /* group of a CPU: its number >> this */
	/* 1: dom[FG_DOMAIN_ALL] stays 0, since it is one line for all CPUs of all users */
	__u64 domains_only;
	__u64 online_cpus; /* of the machine; 0: an older monitor */
	/* switch events found missing by the audit (monitor.md, case 20) */
	__u64 missed __attribute__((aligned(FG_CACHE_LINE)));
	__u64 processes; /* registered, at the last heartbeat */
	/* time in the hook on the context switch, in one switch of FG_COST_EVERY */
	__u64 cost_ns;
	__u64 cost_samples; /* so many switches were timed */
	__u8 near[FG_MAX_CPUS] __attribute__((aligned(FG_CACHE_LINE))); /* enum fg_near */
	struct fg_count dom[FG_MAX_DOMAINS];
	struct fg_cpu_count cpu[FG_MAX_CPUS];
	__u32 queued[FG_MAX_CPUS][FG_MAX_DOMAINS];
	__u32 usable[FG_MAX_DOMAINS][FG_CPU_GROUPS];
} __attribute__((aligned(FG_CACHE_LINE)));

#define FG_COST_EVERY 128 /* of each CPU, while a process is registered; not varied */

/* Not varied. */
#define FG_HEARTBEAT_NS	      100000000ull
#define FG_HEARTBEAT_STALE_NS 500000000ull /* then clients take the monitor for dead */

/* ---- thread registration, in band ---------------------------------------
 * Each thread has this in its thread-local storage, at one distance from its
 * rseq area that is the same for all threads of the process.  The eBPF program
 * reads it when it first switches the thread out; there is no system call.
 *
 * It reads it again only when slot.bound is no longer this thread.  So a process that
 * hands out a slot stores 0 to its `bound`, and to that of the slot that a live
 * thread gives up; and a fork child sets `slot` to 0 before it says hello.
 */
struct fg_tls_bind {
	__u32 slot;  /* index into the slot array, 0 = none yet */
	__u32 check; /* slot ^ FG_TLS_MAGIC */
};
#define FG_TLS_MAGIC 0x46474c4bu

/* ---- socket -------------------------------------------------------------
 * AF_UNIX, SOCK_SEQPACKET, at $FLEXGUARD_SOCKET ('@' first: abstract name) or
 * FG_SOCKET_PATH.  The client sends fg_hello, the monitor answers fg_welcome;
 * with error == 0 two descriptors come along (SCM_RIGHTS): one piece of the slot
 * array (mmap read-write, (slots - from) * sizeof(struct fg_slot)) and the counters (mmap
 * read-only, sizeof(struct fg_counters)).  The client may close the socket at
 * once: the monitor follows the process by pidfd.
 *
 * A process has one array.  Another hello from 0 is answered with its first piece as it stands; one
 * from the number of slots that it has, with a further piece.  Errors of the latter: -ESTALE, this
 * monitor does not know the process; -EDQUOT, no more slots for it or its user; -EAGAIN, ask later.
 * Only after exec, or with other credentials, does it begin with a fresh array.  A child of fork is
 * another process.
 *
 * The process that connected says hello itself, and must not have changed since: an exec or a
 * change of credentials in between is answered with -EACCES, and so is a hello that another process
 * sent.  Its threads are bound as long as they are what said hello (bpf/who.h); a process that
 * changes its credentials later, as a daemon does that gives up root, finds slot[0].ended set and
 * says hello again.
 */
#define FG_SOCKET_PATH "/run/flexguard/flexguard.sock"
#define FG_SOCKET_ENV  "FLEXGUARD_SOCKET"
#define FG_PROTO_MAGIC 0x4b4c4746u
/*
 * A monitor at an abstract name may sleep: nobody listens there, but a datagram to that name with
 * this behind it, a knock, wakes it.  A process knocks when its threads have slept for locks often.
 */
#define FG_KNOCK "/knock"

struct fg_hello {
	__u32 magic;
	__u32 abi;
	__u32 want_slots; /* slots that the client would like in this piece, FG_PIECE at most */
	__u32 from;	  /* first slot of the piece that it asks for; a multiple of FG_PIECE */
	__s64 tls_offset; /* address of fg_tls_bind minus address of the thread's rseq area */
};

/*
 * The monitor of `flexguard run` is for the processes that were told of it.  Its name is for all to
 * see (/proc/net/unix), so it has told them a secret as well: FG_SECRET characters in the
 * environment, which takes the right to trace a process.  At an abstract name a hello may have it
 * behind it, and a knock is nothing but it; without, that monitor answers -EACCES, and does not
 * wake.
 */
#define FG_SECRET_ENV "FLEXGUARD_SECRET"
#define FG_SECRET     32

struct fg_told_hello {
	struct fg_hello hello;
	char secret[FG_SECRET];
};

struct fg_welcome {
	__u32 magic;
	__u32 abi;
	__s32 error;  /* 0 or -errno; then no descriptors follow */
	__u32 slots;  /* the piece ends before this slot (slot 0, which is not used, included) */
	__u32 domain; /* index into fg_counters.dom */
	__u32 nr_cpus;
};

/*
 * A question in place of a hello, for `flexguard status`, `top` and `metrics`: one
 * packet each way again, without descriptors.  Root and the monitor's own user hear of
 * all processes, others of their own, as they were half a second ago at the most; totals are for
 * everybody, as the counters are.
 */
#define FG_QUERY_MAGIC 0x51474c46u

struct fg_query {
	__u32 magic;
	__u32 abi;
	__u32 from;  /* processes are numbered; the answer has some from this number on */
	__u32 flags; /* 0 */
};

struct fg_report_process {
	__s32 pid; /* in the monitor's pid namespace */
	__u32 uid;
	__u32 domain;
	__u32 slots;
	__u32 threads;		    /* that the program is bound to now */
	__u32 runnable;		    /* of these, on a CPU or waiting for one */
	__u64 since_ns;		    /* registered, by up_ns */
	__u64 preempted;	    /* times its threads lost the CPU while critical */
	__u64 blocked;		    /* times they went to sleep while critical */
	__u64 stats[FG_SLOT_STATS]; /* BLOCKED_NS in nanoseconds */
};

#define FG_REPORT_PROCESSES 256	       /* in one answer; not varied */
#define FG_MOST_PROCESSES   (1u << 20) /* all numbers are below: --max-processes */

struct fg_report {
	__u32 magic; /* FG_QUERY_MAGIC */
	__u32 abi;
	__s32 error; /* 0 or -errno */
	__u32 next;  /* what to ask for next; 0: that was all */
	__u32 count; /* entries of process[] */
	__u32 uid;   /* that the monitor runs as */
	char version[28];
	/* -errno: the kernel refused to attach its programs again, when it was asked last; or 0 */
	__s32 unattached;
	__u64 generation;
	__u64 up_ns;	 /* since it serves: its clock may be of another time namespace */
	__u64 processes; /* now, of all users */
	__u64 max_processes;
	__u64 registered; /* hellos that were welcomed, since the start; not for further pieces */
	__u64 refused;	  /* hellos that were not: quota, version, no room */
	__u64 dropped;	  /* connections that said nothing, or nonsense */
	/* of fg_counters: of all domains and all CPUs */
	__u64 preempted, blocked, total_preempted, total_blocked, missed;
	__u64 cost_ns, cost_samples;
	__u64 stats[FG_SLOT_STATS]; /* of all processes since the start */
	struct fg_report_process process[FG_REPORT_PROCESSES];
};

#ifndef __bpf__
_Static_assert(sizeof(struct fg_report) % 8 == 0 && sizeof(struct fg_report_process) == 104,
	       "wire format");
_Static_assert(sizeof(struct fg_slot) == 2 * FG_CACHE_LINE, "two lines, two writers");
_Static_assert(sizeof(struct fg_slot_rest) == FG_CACHE_LINE, "the first line of a slot");
_Static_assert(sizeof(struct fg_count) == 2 * FG_CACHE_LINE, "one line is polled");
_Static_assert(sizeof(struct fg_cpu_count) == FG_CACHE_LINE, "one line a CPU");
_Static_assert(sizeof(struct fg_hello) == 24 && sizeof(struct fg_welcome) == 24, "wire format");
#endif

#endif
