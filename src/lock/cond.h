/* SPDX-License-Identifier: MIT */
/*
 * The condition variable: a FIFO of waiters, each on a word of its own on its
 * own stack, guarded by an fg_lock.  48 bytes, zero is "nobody waits".  Tickets
 * and sequence counters lose signals to waiters that time out
 * (docs/design/lock.md); individually enqueued waiters do not.
 *
 *   waiter's word   meaning                             who moves it on
 *   WAITING         in the list                         signaller -> SIGNALED, LAST; waiter -> GONE
 *   SIGNALED        out of the list, others remain      -
 *   LAST            out of the list, by a broadcast or  -
 *                   as the last one
 *   GONE            timed out or cancelled, still in    the waiter, which takes itself out
 *                   the list
 *
 * Destruction right after the last waiter was signalled is legal, so a waiter
 * in LAST never touches the condition variable again.  One in GONE or SIGNALED
 * does, once: to leave the list; to pass its signal on if it is cancelled, or
 * to say that it will not.  fg_cond_destroy waits for those.
 */
#ifndef FG_COND_H
#define FG_COND_H

#include "lock/lock.h"

struct fg_waiter {
	struct fg_waiter *next, *prev; /* guarded by fg_cond.lock */
	uint32_t word;
};

struct fg_cond {
	struct fg_lock lock;	 /* lock.tag: waiters in SIGNALED; atomic */
	struct fg_waiter *first; /* guarded by lock, as `last` */
	uint32_t epoch;		 /* fork epoch of lock and list: a parent's threads do not exist in the child */
	uint32_t flags;		 /* where glibc keeps its own; only FG_COND_* are looked at */
	struct fg_waiter *last;
};
#define FG_COND_SHARED	  1u /* glibc's bit: initialised as process-shared, not ours */
#define FG_COND_MONOTONIC 2u /* glibc's bit: timed waits are on CLOCK_MONOTONIC */
_Static_assert(sizeof(struct fg_cond) == 48, "in place of pthread_cond_t");

/* The caller's mutex, of whatever kind: the condition variable only releases and takes it. */
struct fg_cond_mutex {
	int (*unlock)(void *mutex); /* 0, or an error that ends the wait before it began */
	int (*lock)(void *mutex);
	void *mutex;
};

/* 0, ETIMEDOUT, or what unlock or lock returned.  A cancellation point. */
int fg_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m, const struct fg_deadline *deadline);
void fg_cond_signal(struct fg_cond *c);
void fg_cond_broadcast(struct fg_cond *c);
/* Waits for waiters that are on their way out by themselves; waiting ones are the caller's mistake. */
void fg_cond_destroy(struct fg_cond *c);

#endif
