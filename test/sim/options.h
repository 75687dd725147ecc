/* SPDX-License-Identifier: MIT */
/* What the command line says, besides `load`, `schedule` and `figures` (options.c). */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H
#include "check.h"

extern struct told {
	struct check check;
	const char *object, *lock, *policy, *machine;
	int threads, cpus;
	const char *of_schedules;		  /* an option that says something of them only */
	uint64_t time, quantum, noise, idle_exit; /* quantum: + 1; 0: the machine's own */
	uint64_t warm_up;			  /* a tick, for the balancing of load */
	bool profile, where, looks;
} opt;

void parse_options(int argc, char **argv);
/* A wrong call ends with a line that says why. */
__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...);

#endif
