/* SPDX-License-Identifier: MIT */
/* Processes beside a benchmark that want a CPU, take no lock and wait for nothing. */
#ifndef FG_BENCH_HOGS_H
#define FG_BENCH_HOGS_H

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { MAX_HOGS = 256 };

static void start_hogs(pid_t *pid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] > 0)
			continue;
		if (pid[i] < 0) { /* beside fewer it would be another measurement */
			fprintf(stderr, "%s: cannot make %u processes: %s\n",
				program_invocation_short_name, n, strerror(errno));
			exit(2);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (uint64_t x = i;;)
			x = work(1000, x);
	}
}

static void end_hogs(const pid_t *pid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

#endif
