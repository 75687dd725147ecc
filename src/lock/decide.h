/* SPDX-License-Identifier: MIT */
/*
 * "I wait for this; spin or block?"  The one question of the runtime, asked by
 * every waiting loop.  The policies are those of sys/options.h.
 */
#ifndef FG_DECIDE_H
#define FG_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "lock/thread.h"
#include "monitor/protocol.h"
#include "sys/options.h"

enum fg_verdict { FG_SPIN, FG_BLOCK };

/* One wait, from its first question to its end or its first sleep. */
struct fg_wait {
	struct fg_self *self;
	uint32_t owner;	    /* id of the owner of the lock when it was last looked at, 0 = free or not known */
	uint32_t asked;	    /* questions so far */
	uint64_t since_ns;  /* of the first clock reading; 0 before */
	uint64_t off_ns;    /* since when the critical path has been seen off its CPU; 0 = it runs */
	uint64_t cpu_ns;    /* fallback: owner's CPU clock at `cpu_at_ns` */
	uint64_t cpu_at_ns;
};

enum fg_verdict fg_decide(struct fg_wait *w);

/* True if the thread with this index is known to be off its CPU: do not hand it anything. */
bool fg_is_off_cpu(uint32_t index);

/*
 * True if this thread, when it came on last, took its CPU from another thread
 * of this process: more of them are awake than have room.
 */
bool fg_displaced_another(const struct fg_self *t);

/*
 * What the policies look at.  fg_counters always points to something readable:
 * to zeroes without a monitor.
 */
extern enum fg_policy fg_policy;	/* as chosen by the user */
extern enum fg_policy fg_policy_now;	/* as in force: FALLBACK while a monitor is wanted and absent */
extern const struct fg_counters *fg_counters;
extern uint32_t fg_domain;
extern uint64_t fg_spin_ns;		/* spin-then-park */

void fg_policy_set(enum fg_policy policy);
/* A monitor came (its counters) or went (NULL). */
void fg_policy_monitor(const struct fg_counters *counters, uint32_t domain);

#endif
