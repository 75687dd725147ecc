/* SPDX-License-Identifier: MIT */
#include "runtime/cpus.h"

#include <sched.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/atomic.h"
#include "sys/clock.h"
#include "sys/filter.h"

/* How old the number of CPUs may be.  Not varied. */
#define CPUS_EVERY_NS 1000000000u

/* `have`: what it was, if that is known. */
static uint32_t cpus_allowed(uint32_t have)
{
	uint64_t set[CPU_SETSIZE / 64];
	long bytes = 0, i;
	uint32_t n = 0;

	if (fg_call_begins(0)) {
		/* Raw, since errno is the program's. */
		bytes = fg_syscall6(SYS_sched_getaffinity, 0, sizeof(set), (long)set, 0, 0, 0);
		fg_call_ends(0);
	}
	/* more CPUs than the set holds, or who knows (sys/filter.h): enough to go by */
	if (bytes <= 0)
		return have ? have : CPU_SETSIZE;
	for (i = 0; i < bytes / 8; i++)
		n += (uint32_t)__builtin_popcountll(set[i]);
	return n ? n : 1;
}

uint32_t fg_cpus(void)
{
	static uint32_t cpus;
	static uint64_t read_ns;
	uint64_t now = fg_now_ns();

	if (fg_unlikely(!fg_load_relaxed(&cpus) ||
			now - fg_load_relaxed(&read_ns) > CPUS_EVERY_NS)) {
		fg_store_relaxed(&cpus, cpus_allowed(fg_load_relaxed(&cpus)));
		fg_store_relaxed(&read_ns, now);
	}
	return fg_load_relaxed(&cpus);
}
