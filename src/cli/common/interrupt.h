/* SPDX-License-Identifier: MIT */
/* The signals that end a command which then still has something to say, or to undo. */
#ifndef FG_CLI_INTERRUPT_H
#define FG_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

bool fg_hangup_ends(void); /* false: the caller has SIGHUP ignored, as nohup(1) does */

extern volatile sig_atomic_t fg_interrupted; /* the signal; 0: none has come */
void fg_catch_interrupts(void);		     /* calls that wait end with EINTR */
/* They are blocked besides, and come where the caller waits with the mask that it gets. */
void fg_hold_interrupts(sigset_t *unblocked);

#endif
