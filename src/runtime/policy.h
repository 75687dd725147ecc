/* SPDX-License-Identifier: MIT */
/*
 * Which policy is in force: the one that the user chose (abi/options.h), or FALLBACK while that one
 * wants a monitor and there is none; and what the monitor tells.  decide.h asks here.
 */
#ifndef FG_POLICY_H
#define FG_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/options.h"
#include "abi/protocol.h"
#include "sys/atomic.h"

/* fg_counters always points to something readable: to zeroes without a monitor. */
extern enum fg_policy fg_policy; /* as chosen by the user */
/* as in force: FALLBACK while a monitor is wanted and absent */
extern enum fg_policy fg_policy_now;
extern const struct fg_counters *fg_counters;
extern uint32_t fg_domain;
extern uint64_t fg_spin_ns; /* spin-then-park */

/* Whether owners ask for longer time slices (slice.h). */
enum fg_slices {
	FG_SLICES_UNTRIED,
	FG_SLICES_OFFERED,
	FG_SLICES_NONE, /* not by this kernel or C library, or not wanted */
};
extern uint32_t fg_slices;

/* False: not even for a moment. */
static inline bool fg_policy_spins(void)
{
	return fg_load_relaxed(&fg_policy_now) != FG_POLICY_BLOCK;
}

void fg_policy_set(enum fg_policy policy);
/* A monitor came (its counters) or went (NULL). */
void fg_policy_monitor(const struct fg_counters *counters, uint32_t domain);
/* Which one is in force depends on the clock: for fg_filter_setup(). */
void fg_policy_clock_changed(void);
bool fg_policy_has_monitor(void);

/* The machine's CPUs, as the monitor tells, which may be a liar; 0: there is none. */
static inline uint32_t fg_machine_cpus(void)
{
	uint64_t online = fg_load_relaxed(&fg_load_relaxed(&fg_counters)->online_cpus);

	return online < FG_MAX_CPUS ? (uint32_t)online : FG_MAX_CPUS;
}

/*
 * The same; 0: FG_FEW_CPUS or fewer.  With 104 what asks is worth nothing (simulated:
 * docs/design/many-cpus.md, "When all go at once").
 */
#define FG_FEW_CPUS 104u
static inline uint32_t fg_many_cpus(void)
{
	uint32_t n = fg_machine_cpus();

	return fg_likely(n <= FG_FEW_CPUS) ? 0 : n;
}

/* A critical thread of the whole machine, or of this domain where the monitor counts no more. */
bool fg_policy_anybody_preempted(void);
/* Has its heartbeat stopped?  `now`: CLOCK_MONOTONIC, read before the call. */
bool fg_policy_monitor_is_gone(uint64_t now);

#endif
