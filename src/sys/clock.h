/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks.  What the program calls clock_gettime() may be somebody
 * else's: libfaketime's, which takes locks and lies.  The locks go by the
 * kernel's clock alone; only a deadline that the program gives was computed with
 * the program's, and is translated once, when it comes in.
 */
#ifndef FG_CLOCK_H
#define FG_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* At the start of the process: finds the vDSO, and whether the program's clock is faked. */
void fg_clock_setup(void);

/* The one function that reads a clock: 0 or -errno.  errno stays. */
int fg_clock_read(clockid_t clock, struct timespec *now);

uint64_t fg_now_ns(void); /* CLOCK_MONOTONIC */

/*
 * Where system calls are filtered (filter.h): only clocks that need none.  That is the vDSO's,
 * unless the kernel reads its clock in a way that user space cannot: then the last tick's, which is
 * some ms old, and fg_clock_is_coarse.  What there is has to be looked up before.
 */
void fg_clock_prepare(void);
void fg_clock_without_calls(bool filtered);
extern bool fg_clock_is_coarse;

/*
 * A thread is about to lose the CPU's cycle counter, or has not lost it: the kernel takes it from
 * one that asks for that, and with seccomp's strict mode.  The vDSO reads it, which would be a
 * SIGSEGV.  So clocks are read by a system call, or where there may be none, as of the last tick.
 */
void fg_clock_without_counter(bool lost);

/* Somebody else tells the program the time. */
extern bool fg_clock_is_faked;
struct timespec fg_clock_translate(clockid_t clock, struct timespec at, const void *caller);

/*
 * When the kernel's clock will say what the program means by `at`.  `caller`: who
 * gives the deadline; one that comes from whoever fakes the clock is the kernel's
 * already.  May take locks of the program's, so not while one is being taken.
 */
static inline struct timespec fg_clock_real(clockid_t clock, struct timespec at, const void *caller)
{
	return __builtin_expect(fg_clock_is_faked, 0) ? fg_clock_translate(clock, at, caller) : at;
}

#endif
