/* SPDX-License-Identifier: MIT */
/* Which monitor serves the program: one that answers, or one of its own. */
#ifndef FG_CLI_EMBED_H
#define FG_CLI_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fg_embed {
	pid_t pid;	 /* 0: none */
	int control;	 /* the monitor ends when all have closed this end of a socket */
	bool in_session; /* of this pid namespace */
	char socket[64];
	char secret[33]; /* FG_SECRET characters that only this program is told */
};

const char *fg_socket_path(void); /* $FLEXGUARD_SOCKET or the default */
/*
 * Whether there is one that the program will have: also of one that sleeps, but with `now`: then
 * that is woken.
 */
bool fg_daemon_answers(const char *path, bool now);
/*
 * A monitor for one program, asleep until its threads wait for locks, or `now`; 0, or -errno and a
 * sentence in `why`.
 */
int fg_embed_start(struct fg_embed *e, bool now, char *why, size_t why_size);
void fg_embed_ended(struct fg_embed *e); /* it has been waited for: say why */
/* Ends it, unless processes are left that were told of it: then it stays as long as they do. */
void fg_embed_stop(struct fg_embed *e);

#endif
