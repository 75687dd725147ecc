/* SPDX-License-Identifier: MIT */
/* A process's side of the socket in abi/protocol.h. */
#ifndef FG_MONITOR_CLIENT_H
#define FG_MONITOR_CLIENT_H

#include <stdint.h>

/*
 * Registers this process with the monitor, if one answers within a quarter of
 * a second.  No privileges, no malloc, no errno, no cancellation point.
 */
void fg_monitor_register(void);

/*
 * After fork: this process is not registered any more; it is at its first contended lock 2 ms
 * later.
 */
void fg_monitor_forget(void);

/*
 * While a monitor is wanted and there is none, waiters try again now and then, at
 * the start of a wait: for a monitor that came later, or came back.  A try takes
 * some microseconds where nobody listens and FG_RETRY_PATIENCE_NS where somebody
 * does and is silent; then the next ones come more rarely.
 */
extern uint64_t fg_monitor_retry_ns; /* CLOCK_MONOTONIC; not before */
void fg_monitor_retry(uint64_t now);

#define FG_RETRY_PATIENCE_NS 100000000u /* not varied */

/*
 * Without a monitor a waiter goes to sleep, because of the owner or after some time.  What this
 * adds up wakes a monitor that sleeps, at the beginning of a later wait.
 */
void fg_monitor_missed(uint64_t now);

/*
 * While there are more threads than slots that the monitor sees (fg_slots_short), waiters ask for
 * another piece of the array, in the same way: at once, when that fails after 8 s, and a minute
 * later where there are no more for this process or user.
 */
extern uint64_t fg_monitor_grow_ns; /* not before */
void fg_monitor_grow(uint64_t now);

#endif
