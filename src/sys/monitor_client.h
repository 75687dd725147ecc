/* SPDX-License-Identifier: MIT */
/* A process's side of the socket in monitor/protocol.h. */
#ifndef FG_MONITOR_CLIENT_H
#define FG_MONITOR_CLIENT_H

#include <stdbool.h>

/*
 * Registers this process with the monitor, if one answers within a quarter of
 * a second.  No privileges, no malloc, no errno, no cancellation point.
 */
void fg_monitor_register(void);

/* After fork: this process is not registered any more; does so at its first contended lock. */
void fg_monitor_forget(void);

extern bool fg_monitor_register_later;

static inline void fg_monitor_register_if_due(void)
{
	if (__builtin_expect(fg_monitor_register_later, 0))
		fg_monitor_register();
}

#endif
