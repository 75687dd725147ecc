/* SPDX-License-Identifier: MIT */
/* What the kernel's parts share: kernel.c, events.c, sched.c, fibers.c, calls.c. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "sim.h"

/* ---- events.c */
enum event_kind { E_CPU, E_TIMER, E_START, E_KICK, E_SAMPLE, E_VCPUS, E_CANCEL, E_QUOTA };
struct event {
	uint64_t at, seq;
	int kind, who;
	uint64_t arg;
};
void sim_post(uint64_t at, enum event_kind kind, int who, uint64_t arg);
struct event sim_next_event(void); /* there is one */
uint64_t sim_next_at(void);	   /* ~0: there is none */
bool sim_events_left(void);	   /* besides those that do not keep the simulation going */
void sim_events_clear(void);

/* ---- fibers.c */
void fibers_setup(int n);
void fiber_begin(struct thread *t, void (*body)(struct thread *));
void fiber_run(struct thread *t);     /* until it calls sim_yield() */
void fiber_new_tls(struct thread *t); /* as a new thread's: nothing is left of another one */

/* ---- kernel.c */
uint64_t sim_process_ran(void); /* the program's CPU time */
void sim_others_stop(void);	/* all threads but the calling one, for ever */

/* ---- sched.c */
/* Of schedules by priorities: time is one for all, and whoever is ready by then may go on. */
extern uint64_t sim_one_time;
extern bool cpu_armed[SIM_CPUS];	  /* has an event of its own */
extern struct thread *cpu_away[SIM_CPUS]; /* its current, while a kernel thread has the CPU */
void sched_reset(int cpu);
void cpu_arm(struct cpu *c, uint64_t at);
bool cpu_idle(const struct cpu *c);
void cpu_enqueue(struct cpu *c, struct thread *t);
void cpu_start_slice(struct cpu *c);
void cpu_account(struct cpu *c);
/*
 * The current thread, if any, gives up the CPU: to the queue's first, to one of elsewhere, or to
 * nobody.
 */
void cpu_reschedule(struct cpu *c, bool preempt);
/* By the running CPU: the thread is put on a run queue. */
void sim_wake(struct thread *t);

/* ---- bandwidth.c */
extern double quota_cpus; /* 0: there is none */
void quota_begins(void);
/* The CPU's current thread has run for so long. */
void quota_used(const struct cpu *c, uint64_t ps);
/* May it run there?  If not, the CPU is throttled. */
bool quota_lets_run(const struct cpu *c, const struct thread *t);
bool quota_is_throttled(const struct cpu *c);
/* A call that concerns the files in which a program reads of it: true, and what that returns. */
bool quota_serves(long nr, long a, long b, long c, long *result);
/* It is looked at at a tick. */
void quota_end_slice(struct cpu *c, uint64_t tick);
void quota_idles(const struct cpu *c);
void quota_due(bool period, uint64_t at); /* or what idle CPUs have given back */

/* ---- calls.c */

/* A sleep has lasted long enough, unless the thread has been woken since (timer_seq). */
void sim_timer(int id, uint64_t seq, uint64_t at);
void sim_cancel(int id, uint64_t at);
void sim_futex_reset(void); /* nobody waits */
long sim_pid(void);
void sim_forked(void); /* the calling thread is the child's now */

#endif
