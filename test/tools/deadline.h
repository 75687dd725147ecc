/* SPDX-License-Identifier: MIT */
/* A thread of SCHED_DEADLINE. */
#ifndef DEADLINE_H
#define DEADLINE_H

#include "check.h"

#include <sched.h>
#include <stdbool.h>

/* The calling one.  False: that is not permitted here. */
static inline bool become_deadline(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags, nice_and_priority, runtime, deadline, period;
	} a = {.size = sizeof a,
	       .policy = SCHED_DEADLINE,
	       .runtime = 20000000,
	       .deadline = 100000000,
	       .period = 100000000};

	return !syscall(SYS_sched_setattr, 0, &a, 0);
}

#endif
