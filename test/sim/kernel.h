/* SPDX-License-Identifier: MIT */
/* What kernel.c (events, fibers, the scheduler) and calls.c (futexes, system calls) share. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "sim.h"

enum event_kind { E_CPU, E_TIMER, E_START, E_KICK, E_SAMPLE, E_CANCEL };
void sim_post(uint64_t at, enum event_kind kind, int who, uint64_t arg);

/* ---- fibers.c */
void fibers_setup(int n);
void fiber_begin(struct thread *t, void (*body)(struct thread *));
void fiber_run(struct thread *t);     /* until it calls sim_yield() */
void fiber_new_tls(struct thread *t); /* as a new thread's: nothing is left of another one */

/* ---- fork.c */
extern uint32_t sim_process;

/* ---- kernel.c */
void sim_others_stop(void); /* all threads but the calling one, for ever */

/* By the running CPU: the thread is put on a run queue. */
void sim_wake(struct thread *t);

/* A sleep has lasted long enough, unless the thread has been woken since (timer_seq). */
void sim_timer(int id, uint64_t seq, uint64_t at);
void sim_cancel(int id, uint64_t at);
void sim_futex_reset(void); /* nobody waits */

#endif
