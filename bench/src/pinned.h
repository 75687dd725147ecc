/* SPDX-License-Identifier: MIT */
/* Threads that have one CPU each, in turn: as programs do that place their threads themselves. */
#ifndef FG_BENCH_PINNED_H
#define FG_BENCH_PINNED_H

#include "work.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

/* For pthread_create() of the nth thread, of the CPUs that the caller may use; NULL: not wanted. */
static const pthread_attr_t *pinned(bool wanted, unsigned nth)
{
	static pthread_attr_t attr;
	static cpu_set_t all;
	cpu_set_t one;
	int cpu = 0;

	if (!wanted)
		return NULL;
	if (!CPU_COUNT(&all)) {
		pthread_attr_init(&attr);
		if (sched_getaffinity(0, sizeof(all), &all)) {
			fprintf(stderr, "%s: the CPUs of this process are not known: %s\n",
				program_invocation_short_name, strerror(errno));
			exit(1);
		}
	}
	for (nth %= (unsigned)CPU_COUNT(&all); !CPU_ISSET(cpu, &all) || nth--; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	return &attr;
}

#endif
