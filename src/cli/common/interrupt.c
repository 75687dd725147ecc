/* SPDX-License-Identifier: MIT */
#include "cli/common/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t fg_interrupted;

bool fg_hangup_ends(void)
{
	struct sigaction sa;

	return sigaction(SIGHUP, NULL, &sa) || sa.sa_handler != SIG_IGN;
}

static void on_signal(int sig)
{
	fg_interrupted = sig;
}

void fg_catch_interrupts(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (fg_hangup_ends())
		sigaction(SIGHUP, &sa, NULL);
}

void fg_hold_interrupts(sigset_t *unblocked)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (fg_hangup_ends())
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, unblocked);
	fg_catch_interrupts();
}
