/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks, for the monitor, the command and the tests that play a monitor; the library
 * has its own (sys/clock.h), which must not call what the program may have replaced.
 */
#ifndef FG_MONITOR_CLOCK_H
#define FG_MONITOR_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t fg_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What deadlines and ages are in, and heartbeats (abi/protocol.h). */
static inline uint64_t fg_now_ns(void)
{
	return fg_clock_ns(CLOCK_MONOTONIC);
}

static inline struct timespec fg_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

#endif
