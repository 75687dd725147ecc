/* SPDX-License-Identifier: MIT */
/*
 * A native object (a condition variable of glibc's) with a mutex of ours: libc would release and
 * take a mutex that it does not know.  So it gets one of its own, a bridge.  A waiter holds it from
 * before it releases the mutex of ours until it sleeps, which releases it; signallers of this
 * process take it and release it, if anybody waits so, before they signal: no signal comes between
 * the release and the sleep.  They do not hold it meanwhile: glibc's signal may wait for a waiter
 * of another process, which may be stopped.
 *
 * Objects that meet in the table share a bridge, which costs them time only: a thread that holds
 * one waits for nothing else, but for the mutex of ours after having released the bridge.
 */
#ifndef FG_BRIDGE_H
#define FG_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#include "lock/cond.h"

/* A process's bridges, native mutexes, and what can be done with one. */
struct fg_bridges {
	void *table; /* `count` of them, of `size` bytes each */
	/*
	 * For each how many waits there are with it.  A child of fork keeps the parent's: too many
	 * cost time, and a wait that goes on in the child, below a handler, takes its own off.
	 */
	uint32_t *waits;
	size_t size;
	uint32_t count;
	uint32_t shift; /* objects are told apart by what is above so many bits, in their page */
	int (*lock)(void *bridge);
	int (*unlock)(void *bridge);
	void (*renew)(struct fg_bridges *b); /* as their static initialiser has them */
	uint32_t epoch; /* fork epoch: a parent's thread may have had one when it was copied */
};

/*
 * Waits with the mutex `m`, which is ours: `wait` releases the bridge, sleeps, and takes it again,
 * as pthread_cond_wait() does.  Returns what that returned, or what releasing `m` did: then it has
 * not waited.  `wait` may be a cancellation point.
 */
int _fg_bridge_wait(struct fg_bridges *b, const void *object, const struct fg_cond_mutex *m,
		    int (*wait)(void *bridge, void *arg), void *arg);

/* Signals: `wake`, not before a wait that has released its mutex.  Returns what that returned. */
int _fg_bridge_wake(struct fg_bridges *b, void *object, int (*wake)(void *object));

#endif
