/* SPDX-License-Identifier: MIT */
/*
 * The watchdog of the stress programs: a thread that looks at what the workers
 * have done and ends the process when all of them, or one of them, stand still.
 * It sends no signal and takes no lock, so it cannot repair what it looks for.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "check.h"

#include <getopt.h>

#define PROGRESS_MAX 256

struct progress {
	uint64_t ops; /* by the worker, relaxed */
	/* by the worker: what it does now; NULL = it is done or waits legitimately */
	const char *where;
} __attribute__((aligned(64)));

static struct progress progress[PROGRESS_MAX];
static unsigned progress_limit = 30; /* seconds */
static int progress_stop;

static inline void progress_at(int i, const char *where)
{
	__atomic_store_n(&progress[i].where, where, __ATOMIC_RELAXED);
}

static inline void progress_made(int i)
{
	__atomic_store_n(&progress[i].ops, progress[i].ops + 1, __ATOMIC_RELAXED);
}

__attribute__((noreturn)) static inline void progress_report(int stuck)
{
	check_say("watchdog: %s for %u s (seed %llu)",
		  stuck < 0 ? "no progress" : "a thread stands still", progress_limit,
		  (unsigned long long)check_seed);
	for (int i = 0; i < PROGRESS_MAX; i++)
		if (progress[i].where && (stuck < 0 || i == stuck))
			check_say("  thread %d: %s, after %llu operations", i, progress[i].where,
				  (unsigned long long)progress[i].ops);
	check_end(CHECK_HUNG);
}

static void *progress_watch(void *arg)
{
	uint64_t seen[PROGRESS_MAX] = {0};
	unsigned still[PROGRESS_MAX] = {0}, still_all = 0;

	(void)arg;
	while (!LOAD(progress_stop)) {
		int moved = 0;

		for (int part = 0; part < 50 && !LOAD(progress_stop); part++)
			sleep_us(20000);
		for (int i = 0; i < PROGRESS_MAX; i++) {
			uint64_t ops = __atomic_load_n(&progress[i].ops, __ATOMIC_RELAXED);
			int is_busy = __atomic_load_n(&progress[i].where, __ATOMIC_RELAXED) != NULL;

			if (ops != seen[i] || !is_busy)
				still[i] = 0;
			else if (++still[i] > 2 * progress_limit)
				progress_report(i);
			moved |= ops != seen[i];
			seen[i] = ops;
		}
		still_all = moved ? 0 : still_all + 1;
		if (still_all > progress_limit)
			progress_report(-1);
	}
	return NULL;
}

/* The alarm stays as a backstop for a watchdog that does not get to run. */
static inline pthread_t progress_begin(long run_us)
{
	const char *scale = getenv("CHECK_SCALE");
	sigset_t all, old;
	pthread_t t;

	progress_limit *= scale ? atoi(scale) : 1;
	check_end_after((unsigned)(run_us / 1000000) + 3 * progress_limit + 30);
	progress_stop = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	t = start(progress_watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return t;
}

/*
 * What a stress program can be told: -d, its seconds, also a part of one; -s, the seed; -w, seconds
 * without progress that count as a hang.  0: it is another option.
 */
CHECK_UNUSED static int progress_option(int option, long *run_us)
{
	const char *times = getenv("CHECK_TIMES");

	switch (option) {
	case 'd': *run_us = (long)(atof(optarg) * 1e6) * (times ? atoi(times) : 1); return 1;
	case 's': check_seed = strtoull(optarg, NULL, 0); return 1;
	case 'w': progress_limit = (unsigned)atoi(optarg); return 1;
	default: return 0;
	}
}

/*
 * A stress program's workers: each has its number, counted from `first`, which is also that of its
 * progress.
 */
CHECK_UNUSED static void start_numbered(pthread_t *t, int n, int first, void *(*f)(void *))
{
	for (int i = 0; i < n; i++)
		t[i] = start(f, (void *)(intptr_t)(first + i));
}

CHECK_UNUSED static void join_all(const pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		join(t[i]);
}

static inline void progress_end(pthread_t t)
{
	STORE(progress_stop, 1);
	join(t);
	alarm(0);
}

#endif
