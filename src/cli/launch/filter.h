/* SPDX-License-Identifier: MIT */
/* Seccomp filters around the program that is to be started. */
#ifndef FG_CLI_FILTER_H
#define FG_CLI_FILTER_H

#include <stdbool.h>

/* Seccomp filters of this process; 0: none, -1: the kernel does not say how many. */
int fg_filters_here(void);
/*
 * Finds out whether the library may make its calls, and tells the program that is to be started
 * (filter.c).
 */
bool fg_filters_tell(void);
/* A child of this process lives through the calls that the library makes. */
bool fg_filters_pass(void);
/* Those of waits that look first, too, or there is no filter. */
bool fg_filters_pass_looks(void);

#endif
