/* SPDX-License-Identifier: MIT */
/*
 * The objects whose shipped code runs, each with a program around it: one operation of a load,
 * and what a thread does in a random schedule, with the checks of what the object promises.
 * Compiled as the lock code is, so that their own accesses count.
 */
#ifndef SIM_OBJECTS_H
#define SIM_OBJECTS_H
#include <semaphore.h>
#include <time.h>

#include "sim.h"

/* A function whose accesses cost nothing, and between which nothing happens. */
#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

struct object {
	const char *name;
	/* Chooses an implementation; false: none of that name.  NULL: the product's only. */
	bool (*lock)(const char *name);
	/* All are free; before a run, and before each schedule (load.threads, load.check). */
	void (*reset)(void);
	/* One operation of a load, forever; record() is told of it. */
	void (*op)(struct thread *t);
	/* While a load runs: is what its threads have counted there?  NULL: they count nothing. */
	void (*sum)(void);
	/* The program of a thread in a random schedule. */
	void (*check)(struct thread *t);
	/* All of them have ended: is everything free, and nothing written after its end? */
	void (*after)(void);
	/* In the child of a fork, where the program begins anew; NULL: not promised to work. */
	void (*renew)(void);
	/* A signal handler, in the middle of any access; NULL: handlers_interrupt(). */
	void (*interrupt)(struct thread *t);
};
extern const struct object object_mutex, object_rwlock, object_cond, object_barrier, object_sem,
    object_spin;

enum keys { KEYS_UNIFORM, KEYS_ZIPF, KEYS_SELF_SIMILAR };

extern struct load {
	const struct object *object;
	int locks, rounds, threads, most; /* `most` threads of a schedule */
	uint64_t cs, think;
	int writes;		       /* of rwlocks: one in so many; 0: none */
	bool checks, cancels, forking; /* a random schedule; with these in it */
	bool handlers, foreign;	       /* locks in signal handlers; releases by another thread */
	bool forks;		       /* and it has not forked yet */
	enum keys keys;		       /* which of the locks (keys.c) */
	bool half_look;		       /* half of the mutex' sections only read */
	bool coupled;		       /* the first mutex, then one of the others, then goes it */
	bool nested;		       /* the first, with one of the thread's own in hand */
	bool varies;		       /* the time inside and outside: up to twice as long */
	bool yields;		       /* sched_yield() in each section */
	uint64_t sleeps;	       /* so long, in each section */
	bool uneven;		       /* outside up to twice as long */
	int sections;		       /* of a mutex, one after the other, before `think` */
	bool broadcasts;	       /* a leader sends all others off and waits for them */
	int ends_after;		       /* so many operations is a thread's life; 0: for ever */
	int busy, others, registered;  /* threads of other processes (neighbours.c) */
} load;
extern struct results {
	volatile int started;
	uint64_t violations, wait_hist[256];
	uint64_t idle;	   /* the longest time in which nobody got anything */
	char what[120];	   /* the first violation */
	const void *where; /* in the code; NULL: a check of the program's */
} results;

/* What an object promises does not hold. */
void violation(const char *what);
/*
 * Threads between the beginning of a lock and the end of its unlock: who gives up, late or not
 * waiting at all, must have had one of them in the way.
 */
struct about {
	int now, ever;
};
/* For in_the_way(): of those that come from now on, and of those that are about. */
int look_about(const struct about *a);
/* The same, and comes itself, until gone(). */
int come(struct about *a);
void gone(struct about *a);
bool in_the_way(const struct about *a, int looked);
/* By one that has given up: not before its time was over. */
struct fg_deadline;
void time_was_over(const struct fg_deadline *d);
/* An operation that began at `from`, was granted at `got` and ended now. */
void record(struct thread *t, uint64_t from, uint64_t got);
/* The thread has something that it may have waited for, though its operation goes on. */
void gets_on(void);
uint64_t now(void);
/* The same, of a load: its thread begins to wait, and has what it has waited for. */
uint64_t begins(struct thread *t);
uint64_t gets(struct thread *t);

void load_mapped(void *at, uint64_t size);
void load_reset(void);
/* A signal handler that is due. */
void load_interrupt(struct thread *t);
/* Those that lock mutexes of their own (handlers.c): of a thread, after some accesses more. */
void handlers_reset(void);
void handlers_arm(struct thread *t);
void handlers_interrupt(struct thread *t);
/* One of their mutexes, for a handler that takes another, too. */
void handlers_enter(void);
void handlers_leave(void);
/* The thread has a lock: the monitor's test (bpf/critical.h) must say so. */
void handlers_see_owner(void);
void load_body(struct thread *t);
/* In a section, for the time that the load has for it. */
void work_inside(void);
/*
 * Thread 0, which has the object, forks now and then.  In the child it releases it, goes on with
 * other threads in a program from its start, and does not return.
 */
void fork_sometimes(struct thread *t, void (*release)(void *), void *arg);
/* The same at once, in a signal handler: it returns to what it has interrupted. */
void fork_here(void);

/* A lock of load.locks (keys.c). */
int load_which(void);
/* Those of other processes, from that thread on (neighbours.c), and what had a lock got done. */
void neighbours_begin(int from);
uint64_t neighbours_sections(void);
/* In the place of glibc's (libc_sem.c). */
int sim_libc_sem_wait(sem_t *sem);
int sim_libc_sem_timedwait(sem_t *sem, const struct timespec *at);
int sim_libc_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at);
/* All threads have ended, and none says that it has, or waits for, a lock of the product's. */
void nothing_is_said(void);
/* A time of some microseconds: a deadline, in nanoseconds from now. */
uint64_t some_ns(void);
void some_work(void);
bool one_in(uint32_t n);
#endif
