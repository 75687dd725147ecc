/* SPDX-License-Identifier: MIT */
/*
 * A native object (a condition variable of glibc's) with a mutex of ours: libc would release and
 * take a mutex that it does not know.  So it gets one of its own, a bridge.  A waiter holds it from
 * before it releases the mutex of ours until it sleeps, which releases it; signallers of this
 * process hold it as well: no signal comes between the release and the sleep.
 *
 * Objects that meet in the table share a bridge, which costs them time only: whoever holds one
 * waits for nothing else, but for the mutex of ours after having let it go.
 */
#ifndef FG_BRIDGE_H
#define FG_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

struct fg_bridges {
	void *table; /* `count` native mutexes of `size` bytes each */
	size_t size;
	uint32_t count;
	void (*renew)(struct fg_bridges *b); /* as their static initialiser has them */
	uint32_t epoch; /* fork epoch: a parent's thread may have had one when it was copied */
};

/* The bridge of the object at this address, by what is above the lowest `shift` bits of it. */
void *_fg_bridge_of(struct fg_bridges *b, const void *object, uint32_t shift);

#endif
