/* SPDX-License-Identifier: MIT */
#include "cli/common/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t fg_interrupted;

static void on_signal(int sig)
{
	fg_interrupted = sig;
}

void fg_catch_interrupts(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

void fg_hold_interrupts(sigset_t *unblocked)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, unblocked);
	fg_catch_interrupts();
}
