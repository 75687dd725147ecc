/* SPDX-License-Identifier: MIT */
/*
 * What the environment chooses (options.h), read once by the library's constructor.  All of it,
 * here and elsewhere, by secure_getenv(3): a setuid program's environment is written by whoever
 * starts it.
 */
#ifndef FG_ENVIRONMENT_H
#define FG_ENVIRONMENT_H

#include <stdbool.h>

void fg_env_read(void);	  /* policy; an unknown name is said, in one line on stderr */
void fg_stats_open(void); /* the file named by FLEXGUARD_STATS, if there is one */

extern bool fg_silent; /* FLEXGUARD_VERBOSE=0: say nothing */

#endif
