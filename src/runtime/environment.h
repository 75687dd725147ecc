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

/*
 * In one line on stderr: a setting's value is none of `known` (each with a blank before it), and
 * the default is taken.  Before fg_env_read(), too.
 */
void fg_env_say_unknown(const char *what, const char *setting, const char *value,
			const char *known);

extern bool fg_silent; /* FLEXGUARD_VERBOSE=0: say nothing */

#endif
