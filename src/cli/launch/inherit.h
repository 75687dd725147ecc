/* SPDX-License-Identifier: MIT */
/* What a process keeps over exec, and its child has not, or has otherwise. */
#ifndef FG_CLI_INHERIT_H
#define FG_CLI_INHERIT_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct fg_inherit {
	pid_t pid;
	int policy, nice;
	struct sched_param param;
	int death; /* the signal for the death of the parent, or 0 */
	int subreaper;
};

/* Of this process. */
struct fg_inherit fg_inherit(void);
/* In its child, all signals blocked: be as it was, so that exec goes on as in its place. */
void fg_inherit_all(const struct fg_inherit *from);

/*
 * This command's children can be waited for from now on, which they cannot where the caller ignores
 * SIGCHLD.  The second: the program that is about to be executed finds that as the caller had it.
 */
void fg_inherit_not_sigchld(void);
void fg_inherit_sigchld(void);

/*
 * Whether this process has record locks (fcntl(2)): they go on over exec, and a child has none of
 * them.
 */
bool fg_has_record_locks(void);

#endif
