/* SPDX-License-Identifier: MIT */
/*
 * One mutex and threads that arrive: it begins with one worker, and another joins at regular
 * intervals.  The microbenchmark of the BPF Hybrid Lock (2023, section V.A), whose lock can be made
 * to switch at a number of threads (FLEXGUARD_HYBRID=threads=N,M): here that happens in the middle
 * of a run, with the waiters that there are.
 *
 *   ./arrival_bench -t 8 -i 0.1 -l 5 -O 1000
 *
 * A section reads and writes cache lines, which must add up at the end, or the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "work.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_LINES = 64, MAX_THREADS = 4096 };

struct thread {
	uint64_t sections; /* written by the thread, read by main at any time */
	uint64_t sink;
	pthread_t id;
} OWN_LINES;

struct line {
	uint64_t count; /* guarded by the mutex */
} __attribute__((aligned(CACHE_LINE)));

static unsigned max_threads = 8, lines = 5;
static double interval = 0.1, window = 0.1, out_cycles, units_per_us;
static bool json;
static uint64_t out_units;
static struct thread *threads;

static struct {
	int v;
} stop OWN_LINES;
static struct {
	pthread_mutex_t m;
} lock OWN_LINES = {PTHREAD_MUTEX_INITIALIZER};
static struct {
	struct line line[MAX_LINES];
} data OWN_LINES;

static void *worker(void *arg)
{
	struct thread *t = arg;
	uint64_t n = 0, x = 1;

	while (!__atomic_load_n(&stop.v, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&lock.m);
		for (unsigned i = 0; i < lines; i++)
			x += data.line[i].count++;
		pthread_mutex_unlock(&lock.m);
		__atomic_store_n(&t->sections, ++n, __ATOMIC_RELAXED);
		if (out_units)
			x = work(out_units, x);
	}
	t->sink = x;
	return NULL;
}

static uint64_t sections(unsigned n)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++)
		all += __atomic_load_n(&threads[i].sections, __ATOMIC_RELAXED);
	return all;
}

/* Sections a ms of the first n threads, from now on for a while. */
static double measure(unsigned n, double seconds)
{
	uint64_t t0 = now_ns(), before = sections(n);

	sleep_ns((uint64_t)(seconds * 1e9));
	return (double)(sections(n) - before) * 1e6 / (double)(now_ns() - t0);
}

static void usage(FILE *f)
{
	fputs(
	    "usage: arrival_bench [options]\n"
	    "  -t N         threads in the end (8)\n"
	    "  -i SECONDS   until another arrives (0.1)\n"
	    "  -d SECONDS   measuring window with all of them, an interval after the last one came (0.1)\n"
	    "  -l N         cache lines read and written inside (5, at least 1, at most 64)\n"
	    "  -O CYCLES    busy work outside, in ticks of the cycle counter\n"
	    "  -u N         work units in a microsecond; without: calibrate at start\n"
	    "  -j           one line of JSON; per_ms is that of the window\n",
	    f);
	exit(f == stdout ? 0 : 2);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:i:d:l:O:u:jh")) != -1) {
		switch (c) {
		case 't': max_threads = (unsigned)number(optarg, 1, MAX_THREADS); break;
		case 'i': interval = number(optarg, 1e-3, 1e6); break;
		case 'd': window = number(optarg, 1e-3, 1e6); break;
		case 'l': lines = (unsigned)number(optarg, 1, MAX_LINES); break;
		case 'O': out_cycles = number(optarg, 0, 1e12); break;
		case 'u': units_per_us = number(optarg, 1e-3, 1e9); break;
		case 'j': json = true; break;
		default: usage(c == 'h' ? stdout : stderr);
		}
	}
	if (optind < argc)
		usage(stderr);
}

int main(int argc, char **argv)
{
	uint64_t total;
	double per_ms = 0;
	bool ok = true;

	parse(argc, argv);
	if (out_cycles > 0) {
		if (!HAVE_CYCLES) {
			fputs("arrival_bench: no cycle counter on this architecture\n", stderr);
			return 2;
		}
		if (units_per_us <= 0)
			units_per_us = calibrate_units_per_us();
		out_units = (uint64_t)(out_cycles / cycles_per_us() * units_per_us + 0.5);
	}
	threads = aligned_alloc(2 * CACHE_LINE, max_threads * sizeof(*threads));
	if (!threads) {
		fputs("arrival_bench: out of memory\n", stderr);
		return 2;
	}
	memset(threads, 0, max_threads * sizeof(*threads));
	printf(json ? "{\"steps\": [" : "threads  sections/ms  us a section of each\n");
	for (unsigned n = 1; n <= max_threads; n++) {
		int err = pthread_create(&threads[n - 1].id, NULL, worker, &threads[n - 1]);

		if (err) {
			fprintf(stderr, "arrival_bench: pthread_create: %s\n", strerror(err));
			return 2;
		}
		if (n == max_threads)
			/* until it runs, and the lock has changed */
			sleep_ns((uint64_t)(interval * 1e9));
		per_ms = measure(n, n < max_threads ? interval : window);
		if (json)
			printf("%s%.6f", n > 1 ? ", " : "", per_ms);
		else
			printf("%7u  %11.1f  %.3f\n", n, per_ms,
			       per_ms > 0 ? n * 1000 / per_ms : 0);
	}
	__atomic_store_n(&stop.v, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < max_threads; i++)
		pthread_join(threads[i].id, NULL);
	total = sections(max_threads);
	for (unsigned i = 0; i < lines; i++)
		ok &= data.line[i].count == total;
	if (json)
		printf("], \"threads\": %u, \"per_ms\": %.6f, \"check\": %s}\n", max_threads,
		       per_ms, ok ? "true" : "false");
	if (!ok)
		fputs("arrival_bench: the lines do not add up: mutual exclusion violated\n",
		      stderr);
	return ok ? 0 : 1;
}
