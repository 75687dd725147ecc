/* SPDX-License-Identifier: MIT */
#include "runtime/cpus.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

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

/* As at the start: a quota that comes later is not seen.  Also in whole CPUs, 1 at least. */
static uint32_t quota = FG_QUOTA_NONE, quota_cpus = FG_QUOTA_NONE;

void fg_cpus_setup(void)
{
	if (!fg_call_begins(0))
		return;
	quota = fg_quota();
	quota_cpus = fg_quota_cpus(quota);
	fg_call_ends(0);
}

uint32_t fg_cpus_allotted(void)
{
	uint32_t cpus = fg_cpus();

	return cpus < quota_cpus ? cpus : quota_cpus;
}

/* ---- is it rationed now? ------------------------------------------------------------- */

/*
 * What the process has used since some time ago is looked at no more often than this, and counted
 * against a period of the quota at least, as cpu.max has it by default: in a part of one a process
 * may use more, which it has saved up in the others, and who has used all before the period ends is
 * seen then.  Not varied.
 */
#define USE_EVERY_NS 5000000u
#define USE_LEAST_NS 100000000u

/*
 * So many eighths of the quota are all of it: who is held back uses no more than all, on average,
 * and the kernel adds up what threads on other CPUs have used at their ticks, of up to 4 ms.  Not
 * varied.
 */
#define USE_EIGHTHS 7u

/*
 * Then time is rationed for so long, in which less is used, before all may spin again to see
 * whether they may; for twice as long if that did not last.  Such a look may cost what hundreds of
 * ms are for (simulated: docs/design/many-cpus.md, "Rationed CPU time").  Not varied.
 */
#define RATIONED_NS	 1000000000u
#define RATIONED_MOST_NS 32000000000u

/*
 * As many threads as it is for may spin, and one that mostly waits for them, as main() does: eight
 * with the time of eight CPUs have a seventh more so (simulated, 1 us).
 */
#define MAIN_THREAD 1u

/* Hints, written without order by one thread at a time, or nearly. */
static struct {
	uint64_t next_ns;	   /* the next look */
	uint64_t until_ns, for_ns; /* the end of rationing, and how long it is, or was */
	uint64_t since_ns, had_ns; /* when that began which is counted, and what was used by then */
} use;

/* 0: not known. */
static uint64_t process_cpu_ns(void)
{
	struct timespec t;
	int err;

	if (!fg_call_begins(0))
		return 0;
	err = fg_clock_read(CLOCK_PROCESS_CPUTIME_ID, &t);
	fg_call_ends(0);
	return err ? 0 : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void ration(uint64_t now)
{
	uint64_t was = fg_load_relaxed(&use.for_ns), until = fg_load_relaxed(&use.until_ns);

	was = was && now - until < was ? 2 * was : RATIONED_NS;
	if (was > RATIONED_MOST_NS)
		was = RATIONED_MOST_NS;
	fg_store_relaxed(&use.for_ns, was);
	fg_store_relaxed(&use.until_ns, now + was);
}

/*
 * Whoever looks may be kept off its CPU in between, where there is a quota for most of each period.
 * So the time that is counted begins before what was used by then is read, and ends after.
 */
static uint64_t quota_of(uint64_t ns)
{
	return ns / FG_QUOTA_CPU * quota;
}

static void look_at_use(uint64_t now)
{
	/* Acquire: what was used by then, or later. */
	uint64_t next = fg_load_relaxed(&use.next_ns), since = fg_load_acquire(&use.since_ns);
	uint64_t had = fg_load_relaxed(&use.had_ns), used, ns;
	bool all;

	if (now < next || !__atomic_compare_exchange_n(&use.next_ns, &next, now + USE_EVERY_NS,
						       false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	used = process_cpu_ns();
	if (!used)
		return;
	ns = fg_now_ns() - since;
	all = since && used > had && /* else it is the child of fork, which begins at 0 */
	      used - had >= quota_of(ns < USE_LEAST_NS ? USE_LEAST_NS : ns) / 8 * USE_EIGHTHS;
	if (all)
		ration(since + ns);
	/* Not if it was kept off for so long that another has looked. */
	if ((!all && ns < USE_LEAST_NS && used >= had) ||
	    fg_load_relaxed(&use.next_ns) != now + USE_EVERY_NS)
		return;
	fg_store_relaxed(&use.had_ns, used);
	fg_store_release(&use.since_ns, now);
}

bool fg_is_rationed(void)
{
	uint64_t now;

	if (fg_likely(quota == FG_QUOTA_NONE) || fg_threads_now() <= quota_cpus + MAIN_THREAD ||
	    quota_cpus >= fg_cpus())
		return false;
	now = fg_now_ns();
	if (now >= fg_load_relaxed(&use.until_ns))
		look_at_use(now);
	return now < fg_load_relaxed(&use.until_ns);
}
