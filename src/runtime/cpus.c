/* SPDX-License-Identifier: MIT */
#include "runtime/cpus.h"

#include <sched.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "runtime/thread.h"
#include "sys/clock.h"
#include "sys/filter.h"
#include "sys/quota.h"

/* How old the number of CPUs may be: one is soon asked about again.  Not varied. */
#define CPUS_EVERY_NS 1000000000u
#define ONE_EVERY_NS  10000000u

/* Where the caller has one CPU alone, so many others are asked; of so many indices.  Not varied. */
#define OTHERS_MOST  16u
#define INDICES_MOST 256u

#define SET_WORDS (CPU_SETSIZE / 64)

/* Those of a thread; 0: the caller.  False: it is gone, or there are more than the set holds. */
static bool add_cpus_of(uint32_t tid, uint64_t *all)
{
	uint64_t set[SET_WORDS] = {0};
	/* Raw, since errno is the program's. */
	long bytes = fg_syscall6(SYS_sched_getaffinity, tid, sizeof(set), (long)set, 0, 0, 0);

	for (long i = 0; i < bytes / 8; i++)
		all[i] |= set[i];
	return bytes > 0;
}

static uint32_t number_of(const uint64_t *all)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SET_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(all[i]);
	return n;
}

/* Threads that are pinned to a CPU each run at the same time all the same. */
static void add_cpus_of_others(uint64_t *all)
{
	static uint32_t last;
	uint32_t highest = fg_threads_highest(), at = fg_load_relaxed(&last), asked = 0, tid;

	for (uint32_t i = 0; i < INDICES_MOST && i < highest && asked < OTHERS_MOST; i++) {
		at = at < highest ? at + 1 : 1;
		tid = fg_thread_was(at) ? fg_load_relaxed(&fg_thread_of(at)->tid) : 0;
		if (tid && add_cpus_of(tid, all))
			asked++;
	}
	fg_store_relaxed(&last, at);
}

/* `have`: what it was, if that is known. */
static uint32_t cpus_allowed(uint32_t have)
{
	uint64_t all[SET_WORDS] = {0};
	bool known = false;

	if (fg_call_begins(0)) {
		known = add_cpus_of(0, all);
		if (known && number_of(all) == 1)
			add_cpus_of_others(all);
		fg_call_ends(0);
	}
	/*
	 * More CPUs than the set holds; one whose only CPU is going; or who knows (sys/filter.h).
	 * Enough to go by, and never 0.
	 */
	if (!known || !number_of(all))
		return have ? have : CPU_SETSIZE;
	return number_of(all);
}

uint32_t fg_cpus(void)
{
	static uint32_t cpus;
	static uint64_t read_ns;
	uint32_t have = fg_load_relaxed(&cpus);
	uint64_t age = fg_now_ns() - fg_load_relaxed(&read_ns);

	if (fg_likely(have && age <= (have == 1 ? ONE_EVERY_NS : CPUS_EVERY_NS)))
		return have;
	have = cpus_allowed(have);
	fg_store_relaxed(&cpus, have);
	fg_store_relaxed(&read_ns, fg_now_ns());
	return have;
}

/* As at the start: a quota that comes later is not seen. */
static uint32_t quota = FG_QUOTA_NONE;

void fg_cpus_setup(void)
{
	if (!fg_call_begins(0))
		return;
	quota = fg_quota_cpus();
	fg_call_ends(0);
}

uint32_t fg_cpus_allotted(void)
{
	uint32_t cpus = fg_cpus();

	return cpus < quota ? cpus : quota;
}

/* One mostly waits for the others, as main() does.  Not varied. */
#define MAIN_THREAD 1u

bool fg_is_rationed(void)
{
	return fg_unlikely(quota != FG_QUOTA_NONE) && fg_threads_now() > quota + MAIN_THREAD &&
	       quota < fg_cpus();
}
