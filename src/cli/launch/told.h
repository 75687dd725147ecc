/* SPDX-License-Identifier: MIT */
/* Who was told of a monitor: by the environment of all processes. */
#ifndef FG_TOLD_H
#define FG_TOLD_H

#include <stdbool.h>

/*
 * Is there a process left that was told of the monitor with this secret, or may have been?
 * Daemons, and what a shell has put in the background.  `in_session`: the command has been in a
 * session with a number here.  May take as long as some process keeps its memory locked.
 */
bool fg_is_told(const char *secret, bool in_session);

#endif
