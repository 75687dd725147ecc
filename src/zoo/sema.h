/* SPDX-License-Identifier: MIT */
/*
 * General user semaphores, of which the ulocks are those with one unit.  Franke, Russell, Kirkwood,
 * OLS 2002, section 3, after Franke's ulocks.  libflexguard-zoo.so exports them:
 * dlsym(RTLD_DEFAULT, name) is NULL without.  Not for signal handlers; in a child of fork() one
 * that is not process-shared is initialised again before it is used.
 */
#ifndef FG_ZOO_SEMA_H
#define FG_ZOO_SEMA_H

#include <stdbool.h>
#include <stdint.h>

#define ZOO_SEMA_MAX 32767u /* units, and waiters */

struct zoo_sema {
	/*
	 * fair: 0x80000000 + units to be had - those that wait; else ONE_WAITER for each, + units
	 * to be had
	 */
	uint32_t word;
	uint32_t tokens; /* posted for those that wait */
	uint32_t flags;	 /* 1: process-shared, 2: fair */
	uint32_t unused;
};

/*
 * fair: a unit that is given back belongs to one that waits ("fair wakeup"); else it is anybody's,
 * and one that waits is woken and tries again ("convoy avoidance").  0, or EINVAL: more units than
 * ZOO_SEMA_MAX.
 */
int zoo_sema_init(struct zoo_sema *s, uint32_t units, bool fair, bool shared);
/* A unit, as soon as there is one.  As many threads as ZOO_SEMA_MAX may wait. */
void zoo_sema_down(struct zoo_sema *s);
/* The same without waiting: false, there is none. */
bool zoo_sema_trydown(struct zoo_sema *s);
void zoo_sema_up(struct zoo_sema *s);

#endif
