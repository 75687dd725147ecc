/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What contention.bpf.c writes and the command reads: waits for the kernel's own locks, by lock,
 * and by lock and waiter.  All tables are arrays that are there before the first event, with open
 * addressing: a program that runs in the slow path of any lock may take none itself, and a hash map
 * of eBPF had a spinlock in each bucket until 6.15 (4fa8d68aa53e, "bpf: Convert hashtab.c to
 * rqspinlock").
 */
#ifndef FG_CONTENTION_H
#define FG_CONTENTION_H

#ifndef __bpf__
#include <linux/types.h>
#endif

/* include/trace/events/lock.h: the flags of lock:contention_begin, 5.19 and later. */
#define FG_LCB_SPIN   (1u << 0)
#define FG_LCB_READ   (1u << 1)
#define FG_LCB_WRITE  (1u << 2)
#define FG_LCB_RT     (1u << 3)
#define FG_LCB_PERCPU (1u << 4)
#define FG_LCB_MUTEX  (1u << 5)

enum fg_lock_class {
	FG_CLASS_SEMAPHORE, /* no flag at all */
	FG_CLASS_SPIN,
	FG_CLASS_RWLOCK, /* spinning */
	FG_CLASS_MUTEX,
	FG_CLASS_RWSEM,
	FG_CLASS_PERCPU_RWSEM,
	FG_CLASS_RT, /* rt_mutex, and on PREEMPT_RT most others */
	FG_CLASSES,
};

/* A lock that has no symbol, told by where it was met. */
enum fg_lock_met {
	FG_MET_NONE,
	FG_MET_MMAP_LOCK, /* of the waiter's own mm */
	FG_MET_SIGLOCK,	  /* of the waiter's own process */
};

/* By what waits are told apart, besides the lock. */
enum fg_contention_by {
	FG_BY_TASK,
	FG_BY_CALLER,
	FG_BY_CGROUP,
	FG_BY_OWNER,
};

/*
 * Sizes of the tables and of what is in them.  None was varied; what does not fit is counted as
 * lost.
 */
#define FG_STACK_FRAMES	     16
#define FG_WAIT_BUCKETS	     32 /* bucket n: waits of [2^n, 2^(n+1)) ns, the last one also longer */
#define FG_NESTED_SPINS	     4	/* task, softirq, hardirq, NMI: as many as qspinlock has nodes */
#define FG_LOCK_ROWS	     8192u
#define FG_WAITER_ROWS	     32768u
#define FG_WAITING_ROWS	     16384u
#define FG_PERCPU_CPUS	     8192u /* the most that Linux is built for (CONFIG_NR_CPUS) */
#define FG_CONTENTION_PROBES 32	   /* rows that are looked at before an event is given up */

struct fg_waits {
	__u64 waits;  /* that ended with the lock */
	__u64 failed; /* that ended without: a signal, a deadline */
	__u64 reads;  /* of both, by readers */
	__u64 wait_ns, max_ns;
};

struct fg_contended_lock {
	__u64 key; /* 0: free */
	__u64 lock;
	__u32 class, role;
	struct fg_waits w;
	/* Of exclusive acquisitions that had to wait, one after the other. */
	__u64 handovers;  /* to another CPU or the same */
	__u64 across;	  /* to another NUMA node */
	__u64 last;	  /* 1 + the node of the last one; 0: none yet */
	__u64 run, batch; /* on one node now, and the longest */
	/* Where the kernel tells of contended releases: from the end of a wait to that. */
	__u64 holds, hold_ns, hold_max_ns;
	__u64 held_since, holder; /* 1 + tid */
	__u64 buckets[FG_WAIT_BUCKETS];
};

struct fg_contended_waiter {
	__u64 key; /* 0: free */
	__u64 lock_key;
	__u64 id; /* tid, owner's tid (0: not told), cgroup id, or a hash of the stack */
	struct fg_waits w;
	__u64 stack[FG_STACK_FRAMES]; /* of FG_BY_CALLER; 0 ends it */
	__u32 tgid, pad;
	char comm[16];
};

/* A wait that has not ended. */
struct fg_waiting {
	__u64 key; /* 0: free */
	__u64 start;
	__u64 id;
	__u32 class, role;
	__u32 read, owner_tgid;
	char owner_comm[16];
	__u64 stack[FG_STACK_FRAMES];
};

struct fg_contention_counts {
	__u64 begun, ended;
	/* ends of waits whose begin was not seen: it was before the start, or of another process */
	__u64 unmatched;
	__u64 full_locks; /* events lost because a table had no row left */
	__u64 full_waiters;
	__u64 full_waiting;
	__u64 nested; /* more spinlocks at once on a CPU than the kernel has nodes for */
};

#endif
