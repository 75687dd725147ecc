/* SPDX-License-Identifier: MIT */
/*
 * A deterministic many-core machine in one host thread, on which the shipped lock
 * code runs unchanged.  README has the overview.  All times are picoseconds.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_CPUS    512
#define SIM_THREADS 8192
/* Of a random schedule: its threads, those with --weak, their rounds, change points. */
#define CHECK_THREADS 256
#define WEAK_THREADS  32
#define ROUNDS_MAX    4096
#define CHANGES_MAX   16
/*
 * Tenths of the time that each of two threads of a core takes: together they do up to 1.3 times
 * what one does (Marr et al., "Hyper-Threading Technology Architecture and Microarchitecture",
 * Intel Technology Journal 6(1), 2002).  One that has paused within so many ps spins, and leaves
 * the core to the other.
 */
#define SMT_PACE  15u
#define SMT_SPINS (100 * NS)
#define NS	  1000ull
#define US	  1000000ull
#define MS	  1000000000ull

/* What a machine costs; presets in main.c. */
struct model {
	const char *name;
	/* clusters: of a socket, each with its own last-level cache */
	int cpus, sockets, clusters, smt;
	uint64_t hit, store, rmw, pause, clock;		   /* in the CPU's own cache */
	uint64_t sibling, cluster, socket, remote;	   /* a line from there */
	uint64_t syscall, futex, wake, cswitch, idle_exit; /* futex: under the bucket's lock */
	uint64_t interrupt; /* by another CPU: what each of the two loses by it */
	uint64_t slice, tick;
	bool wakeup_preemption; /* by who is woken (kernel.c) */
	uint64_t quantum;	/* how far one CPU may run ahead of another in one go */
	/* mean time between interrupts' threads of a CPU (0: none), and how long they run */
	uint64_t noise, noise_len;
	/* a guest: mean time until its host takes a CPU away, and for how long; 0: none */
	uint64_t steal, steal_len;
	int little;    /* CPUs from this one on are slow; 0: none */
	uint32_t pace; /* they take so many tenths of the time */
};
extern struct model M;
extern bool skew_tick;	  /* ticks of CPUs are spread over a tick */
extern bool smt_slow;	  /* two threads of a core are slower than one (SMT_PACE) */
extern bool random_lines; /* who of those that wait for a line gets it next is random */
extern bool untold;	  /* the hypervisor does not tell a guest's monitor what it takes */

/* Address classes. */
enum { C_OTHER, C_LOCK, C_DATA, C_NODE, C_SLOT, C_COUNTER, C_CLASSES };
extern const char *const class_name[C_CLASSES];
void mem_class(const void *at, uint64_t size, int class);
/* The same at n places, each `stride` bytes after the one before. */
void mem_class_each(const void *at, uint64_t size, uint64_t stride, uint64_t n, int class);
/* Accesses there cost nothing: what only the simulation reads. */
void mem_unseen(const void *at, uint64_t size);

struct mem_stats {
	uint64_t local[C_CLASSES], remote[C_CLASSES];
};
extern struct mem_stats mem_stats;

#define SITES 4096
extern struct site {
	const void *pc;
	int class;
	uint64_t n;
} sites[SITES];

/* Nobody may touch it any more until the next schedule; `what` is said if somebody does. */
void mem_retire(const void *at, uint64_t size, const char *what);

/* All stacks, one after the other: no thread may touch what another one uses no longer. */
#define STACK 65536
void mem_stacks(const void *at, uint64_t size);

/* ---- memory.c: called by kernel.c and by what the compiler puts before each access */
enum access { A_READ, A_WRITE, A_RMW };
void mem_access(const void *at, enum access kind);
void mem_reset(void);
struct cpu;
uint64_t cpu_distance(const struct cpu *a, const struct cpu *b);

void mem_retired_are_new(void); /* in another process */

/* ---- weak.c: memory orders.  Sizes in bytes; `before` and `real` are what memory has */
extern bool weak;
void weak_reset(void);
uint64_t weak_load(const volatile void *at, uint32_t size, int order, uint64_t real);
void weak_store(volatile void *at, uint32_t size, int order, uint64_t before, uint64_t value);
void weak_rmw(volatile void *at, uint32_t size, int order, uint64_t before, uint64_t value);
void weak_look(const volatile void *at, uint32_t size, int order, uint64_t real);
void weak_fence(int order);
void weak_fence_everywhere(void); /* membarrier(2) */
void weak_wakes(int from, int to);
void weak_watch(const void *at); /* 64 bytes of plain data that an object guards */
void weak_plain(uint64_t at, bool writes, const void *pc);
/* Places in the code with an order, and one that is to have none. */
#define ORDERS 1024
extern struct orders {
	uint32_t n;
	struct {
		const void *pc;
		int order;
		uint64_t times;
	} at[ORDERS];
} *orders; /* NULL: do not note them */
extern const void *relaxed_at;

/* ---- kernel.c */
struct thread;
struct cpu {
	uint64_t now, slice_end, next_noise, stores_done;
	struct thread *cur, *queue; /* queue: by vruntime */
	int queued, id, socket, cluster, core;
	bool in_kernel, resched, kicked;
	bool displaced;		      /* a woken thread comes before its current one */
	uint64_t slice_began;	      /* from then on for M.slice it is not displaced */
	uint32_t pace;		      /* 10: full speed */
	const struct cpu *sibling;    /* on its core, if it counts (smt_slow) */
	uint64_t pauses_until;	      /* its latest pause */
	uint64_t next_steal;	      /* when the hypervisor takes it away */
	uint64_t off_from, off_until; /* when it last has */
	uint64_t armed_at;	      /* schedules by priorities: when it may go on */
	uint64_t interrupted;	      /* for so long, from when it next goes on */
};
struct thread {
	void *sp, *stack;
	const void *place; /* of its latest access */
	uint64_t fs;
	uint32_t *rseq_cpu;
	int id, cpu;
	enum { T_NEW, T_RUN, T_QUEUED, T_ASLEEP, T_DONE } state;
	struct thread *next, *fnext; /* run queue, futex queue */
	uint64_t vruntime, started, ran, timeout, timer_seq, runnable_since;
	const uint32_t *word;
	uint32_t channels;
	long result;
	void (*body)(struct thread *);
	struct sim_cleanup *cleanups; /* of a thread that may be cancelled: the innermost first */
	bool cancelled, cancellable;  /* somebody has; it is in a call that ends then */
	int64_t priority;	      /* of schedule.c: the highest runs */
	int role;		      /* in its program; its number, but in the child of a fork */
	uint32_t interrupt;	      /* after so many accesses a signal handler runs; 0: none */
	bool blocks_signals;
	bool neighbour;			  /* of another process: no figure is about it */
	uint32_t lives;			  /* threads that were here before and have ended */
	uint64_t ops, max_wait, sum_wait; /* the workload's */
	uint64_t waits_from;		  /* of a load; 0: it does not wait */
	uint64_t made;			  /* of load.ends_after */
};
static inline uint64_t at_pace(const struct cpu *c, uint64_t ps)
{
	const struct cpu *s = c->sibling;

	if (s && s->cur && s->pauses_until + SMT_SPINS <= c->now)
		ps = ps * SMT_PACE / 10;
	return c->pace == 10 ? ps : ps * c->pace / 10;
}
extern struct cpu cpus[SIM_CPUS];
extern struct thread threads[SIM_THREADS];
extern struct cpu *here; /* whose program runs now; NULL outside of the simulation */
extern uint64_t horizon; /* the running CPU may go on until its clock says this */
extern uint64_t rng_state;
#define SAMPLES 4096
extern uint16_t runnable_at[SAMPLES]; /* threads that do not sleep, every 250 us */
struct kernel_stats {
	uint64_t switches, preempted, waits, wakes, woken, timeouts, pulls, yields, barriers, hooks,
	    fibers;
	uint64_t runnable_sum, runnable_samples, one_runnable;
	uint64_t ran; /* CPU time of the program's threads */
};
extern struct kernel_stats kernel_stats;

void sim_setup(int nthreads);
void sim_spawn(int id, void (*body)(struct thread *), uint64_t at);
/* Until no event is left before `until`: 0, or the number of threads that will never run again. */
int sim_run(uint64_t until);
void sim_restart(void); /* threads are done: clocks to 0 */
void sim_yield(void);	/* the running fiber to the event loop, as it is */
void sim_work(uint64_t ps);
struct thread *sim_self(void);
void sim_cancel_in(struct thread *t, uint64_t ps); /* pthread_cancel() after that time */
/* The calling thread in the child of its fork: all others have stopped for ever. */
void sim_fork(void);
void sim_exit(void); /* of the calling thread */
/* The calling thread ends; a while later another one begins, which is what returns. */
void sim_replaced(void);
extern bool chaos; /* random costs and preemptions instead of a machine's */

/* ---- schedule.c: random schedules, step by step */
#define SCHEDULE_MAX 20000000ull /* steps; more than that, and somebody spins for ever */
extern struct schedule {
	uint64_t steps, hash; /* accesses so far, and which they were */
	bool by_priority;     /* PCT */
	bool traced;
} schedule;
/* The thread is about to access memory; true: others go first. */
bool schedule_step(struct thread *t, const void *pc, uint64_t at);
void schedule_begins(int nthreads, int changes, uint64_t length);
void schedule_pauses(struct thread *t); /* it waits for others */
void schedule_print(void);
void print_place(const void *pc);
/* FUNCTION at FILE:LINE; "?": not known. */
void name_place(const void *pc, char *name, size_t size);

/* No access that the simulation sees: else its one line would be what all threads wait for. */
static inline __attribute__((no_sanitize("thread"))) uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state * 0x2545F4914F6CDD1Dull >> 16;
}

/* ---- monitor.c: the shipped eBPF program */
extern bool monitor_on;
void mon_setup(int nthreads, int cpus, int64_t tls_offset);
void mon_reset(void);
void mon_machine(void); /* the CPUs, and where they are */
void mon_rseq(int id, void *area);
/* -1: the idle task, -2: a kernel thread */
void mon_switch(int cpu, int prev, bool prev_runnable, bool preempt, int next);
void mon_wakeup(int id, int cpu);
void mon_migrate(int id, int to);
void mon_neighbour(int id, int leader, bool registered); /* a thread of another process */
void mon_exit(int id);
void mon_new(int id, int tid); /* another thread, in the place of one that has ended */
void mon_tick(void);
void mon_vcpu(int cpu, bool off); /* what the hypervisor writes of it */
void mon_look_at_vcpus(void);
void *mon_counters(uint64_t *size);

#endif
