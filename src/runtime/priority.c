/* SPDX-License-Identifier: MIT */
/*
 * How the kernel orders threads: sched(7).  Asked each time, since anybody may change it at any
 * time.
 */
#include <sched.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/decide.h"
#include "sys/filter.h"

/* 0: the calling thread. */
static long scheduling_policy(uint32_t tid)
{
	return fg_syscall6(SYS_sched_getscheduler, (long)tid, 0, 0, 0, 0, 0) &
	       ~(long)SCHED_RESET_ON_FORK;
}

uint8_t fg_real_time_priority(const struct fg_self *t, uint32_t tid)
{
	struct sched_param p = {.sched_priority = 1};
	uint8_t priority = 0;

	if (!fg_call_begins(t->id))
		return 0;
	switch (scheduling_policy(tid)) {
	case SCHED_DEADLINE: priority = FG_PRIORITY_DEADLINE; break;
	case SCHED_FIFO:
	case SCHED_RR:
		fg_syscall6(SYS_sched_getparam, (long)tid, (long)&p, 0, 0, 0, 0);
		priority = (uint8_t)p.sched_priority;
	}
	fg_call_ends(t->id);
	return priority;
}

void fg_yield_to_equals(const struct fg_self *t)
{
	if (!fg_call_begins(t->id))
		return;
	if (scheduling_policy(0) != SCHED_DEADLINE)
		fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	fg_call_ends(t->id);
}
