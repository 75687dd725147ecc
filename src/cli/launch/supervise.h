/* SPDX-License-Identifier: MIT */
/* Starts the target, and ends as it does. */
#ifndef FG_CLI_SUPERVISE_H
#define FG_CLI_SUPERVISE_H

#include <signal.h>

#include "cli/launch/embed.h"
#include "cli/launch/statsfile.h"
#include "cli/launch/target.h"

/*
 * Run the target as a child, be transparent for signals and job control, and
 * return its wait status, or -errno.  `keep` are descriptors that the
 * supervisor needs itself; it closes the others, which are the program's.
 * `stats` are removed if the supervisor is killed.
 */
int fg_supervise(const struct fg_target *t, char **argv, struct fg_embed *mon,
		 const struct fg_statsfile *stats, const int *keep, int nr_keep,
		 const sigset_t *mask);
/* End as the child did: same exit status or same signal. */
_Noreturn void fg_exit_like(int wait_status);
/* execve() in place; on failure says why and returns 126 or 127. */
int fg_exec(const struct fg_target *t, char **argv);

#endif
