/* SPDX-License-Identifier: MIT */
/* Tells a signal that was sent to our process group from one that was sent to us alone. */
#ifndef FG_CLI_WITNESS_H
#define FG_CLI_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/launch/statsfile.h"

struct fg_witness {
	const struct fg_statsfile *stats; /* removed by it if we are killed */
	pid_t pid;			  /* 0: there is none */
	int socket;			  /* to ask it; -1: it cannot be asked */
	sigset_t group;			  /* seen by it, and still to be taken by us */
};

/* All signals are blocked. */
void fg_witness_start(struct fg_witness *w);
/* The first one, behind a child of the group that waits with all signals blocked. */
void fg_witness_start_late(struct fg_witness *w, pid_t child);
/* Whether this one, which sigwaitinfo() gave us, went to the whole group. */
bool fg_witness_saw(struct fg_witness *w, const siginfo_t *si);
void fg_witness_stop(struct fg_witness *w);

#endif
