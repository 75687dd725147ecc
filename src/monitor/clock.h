/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks, for the monitor and for the command; the library has its own (sys/clock.h).
 */
#ifndef FG_MONITOR_CLOCK_H
#define FG_MONITOR_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t fg_clock_ns(clockid_t clock);

/* What deadlines and ages are in, and heartbeats (abi/protocol.h). */
static inline uint64_t fg_now_ns(void)
{
	return fg_clock_ns(CLOCK_MONOTONIC);
}

#endif
