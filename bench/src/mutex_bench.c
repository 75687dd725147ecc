/* SPDX-License-Identifier: MIT */
/*
 * One mutex, N threads, each in a loop: lock, critical section, unlock, work
 * outside.  A plain pthread program: the same binary runs on glibc's mutex and,
 * under LD_PRELOAD, on another one.
 *
 *   cc -O2 -pthread -o mutex_bench mutex_bench.c
 *   ./mutex_bench -t 4 -c 1000 -o 1000            the sweet spot, 1 us
 *   ./mutex_bench -t 4 -c lines -O 100            the FlexGuard paper's loop
 *   ./mutex_bench -g 1,2,4 -c lines -O 100        the same, with threads added in one run
 *   ./mutex_bench -t 4 -c lines -O 100 -n         beside a mutex of the thread's own
 *
 * Throughput and fairness come from two snapshots of the per-thread counters,
 * taken while the threads run, so neither start-up nor the end counts.  At the
 * end the data that the mutex protects must add up, or the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hogs.h"
#include "latency.h"
#include "work.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_LINES = 64, MAX_STEPS = 64 };
enum phase { WARM_UP, MEASURE, STOP };

struct thread {
	uint64_t sections; /* written by the thread, read by main at any time */
	uint64_t sink;	   /* keeps the work alive */
	uint64_t intrusions;
	struct latencies *lat; /* with -L */
	pthread_t id;
	unsigned nr;
	pthread_mutex_t own; /* with -n */
} OWN_LINES;

struct line {
	uint64_t count; /* guarded by the mutex, as `owner` */
	uint64_t owner;
} __attribute__((aligned(CACHE_LINE)));

struct snapshot {
	uint64_t ns;
	uint64_t *sections;
	struct rusage ru;
};

static struct {
	unsigned threads, lines, hogs;
	/* numbers of threads, one after the other; none: -t from the start */
	unsigned step[MAX_STEPS], steps;
	double seconds, warm_up, cs_ns, out_ns, out_cycles, units_per_us;
	int kind, shared, robust, protocol;
	bool json, latency, nested;
} opt = {.threads = 2, .lines = 2, .seconds = 1.0, .warm_up = 0.1, .kind = PTHREAD_MUTEX_DEFAULT};

static uint64_t cs_units, out_units;
static double step_per_ms[MAX_STEPS];
static struct thread *threads;

static pthread_barrier_t start;
static struct {
	int v;
} phase OWN_LINES;
static struct {
	pthread_mutex_t m;
} lock OWN_LINES;
static struct {
	struct line line[MAX_LINES];
} data OWN_LINES;

/*
 * The work takes up what was read inside, as a program's would.  Without that
 * dependency the CPU overlaps short work with the lock operations next to it.
 */
static inline uint64_t critical_section(struct thread *t, uint64_t x)
{
	uint64_t me = t->nr + 1;

	data.line[0].owner = me;
	for (unsigned i = 0; i < opt.lines; i++)
		x += data.line[i].count++;
	if (cs_units)
		x = work(cs_units, x);
	__asm__ volatile("" ::: "memory");
	if (data.line[0].owner != me)
		t->intrusions++;
	return x;
}

static void *worker(void *arg)
{
	struct thread *t = arg;
	uint64_t n = 0, x = t->nr;
	int now;

	if (!opt.steps)
		pthread_barrier_wait(&start);
	while ((now = __atomic_load_n(&phase.v, __ATOMIC_RELAXED)) != STOP) {
		if (opt.nested)
			pthread_mutex_lock(&t->own);
		if (opt.latency) {
			uint64_t t0 = now_ns();

			pthread_mutex_lock(&lock.m);
			uint64_t t1 = now_ns();

			x = critical_section(t, x);
			pthread_mutex_unlock(&lock.m);
			if (now == MEASURE)
				latency_add(t->lat, t1 - t0);
		} else {
			pthread_mutex_lock(&lock.m);
			x = critical_section(t, x);
			pthread_mutex_unlock(&lock.m);
		}
		if (opt.nested)
			pthread_mutex_unlock(&t->own);
		__atomic_store_n(&t->sections, ++n, __ATOMIC_RELAXED);
		if (out_units)
			x = work(out_units, x);
	}
	t->sink = x;
	return NULL;
}

/*
 * One consistent picture: main competes for a CPU with the threads that it
 * counts, and one that was preempted half-way tries again.
 */
static void take_snapshot(struct snapshot *s)
{
	uint64_t t0, t1;
	int tries = 0;

	do {
		t0 = now_ns();
		for (unsigned i = 0; i < opt.threads; i++)
			s->sections[i] = __atomic_load_n(&threads[i].sections, __ATOMIC_RELAXED);
		t1 = now_ns();
	} while (t1 - t0 > 20000 + 100 * opt.threads && ++tries < 100);
	s->ns = t0 + (t1 - t0) / 2;
	getrusage(RUSAGE_SELF, &s->ru);
}

static double tv_ms(struct timeval tv)
{
	return (double)tv.tv_sec * 1e3 + (double)tv.tv_usec / 1e3;
}

/* Jain's index: 1 if all do the same, 1/n if one does all (Jain, Chiu, Hawe, DEC TR-301, 1984). */
static double jain(const uint64_t *n, unsigned nr, uint64_t total)
{
	double squares = 0;

	for (unsigned i = 0; i < nr; i++)
		squares += (double)n[i] * (double)n[i];
	return squares > 0 ? (double)total * (double)total / (nr * squares) : 1;
}

/* Dice's fairness factor: share of the busier half of the threads; 0.5 is even, 1 starves half. */
static double fairness(const uint64_t *sorted, unsigned n, uint64_t total)
{
	double top = 0;

	if (n < 2 || !total)
		return 0.5;
	for (unsigned i = n - n / 2; i < n; i++)
		top += (double)sorted[i];
	if (n % 2)
		top += (double)sorted[n / 2] / 2;
	return top / (double)total;
}

static void report_latency(void)
{
	static struct latencies all;

	for (unsigned i = 0; i < opt.threads; i++)
		latency_merge(&all, threads[i].lat);
	latency_report(&all, opt.json);
}

static void report_steps(void)
{
	if (opt.json)
		printf(", \"steps\": [");
	for (unsigned i = 0; i < opt.steps; i++)
		printf(opt.json ? "%s{\"threads\": %u, \"per_ms\": %.6f}" :
				  "%swith %6u threads %.1f sections/ms\n",
		       opt.json && i ? ", " : "", opt.step[i], step_per_ms[i]);
	if (opt.json)
		printf("]");
}

static void report(const struct snapshot *a, const struct snapshot *b, bool ok)
{
	uint64_t *n = calloc(opt.threads, sizeof(*n)), total = 0;
	double ms = (double)(b->ns - a->ns) / 1e6;

	for (unsigned i = 0; i < opt.threads; i++)
		total += n[i] = b->sections[i] - a->sections[i];
	qsort(n, opt.threads, sizeof(*n), cmp_u64);

	double user = tv_ms(b->ru.ru_utime) - tv_ms(a->ru.ru_utime);
	double sys = tv_ms(b->ru.ru_stime) - tv_ms(a->ru.ru_stime);
	long vol = b->ru.ru_nvcsw - a->ru.ru_nvcsw, invol = b->ru.ru_nivcsw - a->ru.ru_nivcsw;

	if (opt.json)
		printf(
		    "{\"threads\": %u, \"per_ms\": %.6f, \"fairness\": %.4f, \"jain\": %.4f, \"sections\": %llu, "
		    "\"min\": %llu, \"max\": %llu, \"window_ms\": %.3f, \"user_ms\": %.1f, "
		    "\"sys_ms\": %.1f, \"voluntary\": %ld, \"involuntary\": %ld, "
		    "\"units_per_us\": %.3f, \"cs_units\": %llu, \"outside_units\": %llu, "
		    "\"lines\": %u, \"check\": %s",
		    opt.threads, (double)total / ms, fairness(n, opt.threads, total),
		    jain(n, opt.threads, total), (unsigned long long)total,
		    (unsigned long long)n[0], (unsigned long long)n[opt.threads - 1], ms, user, sys,
		    vol, invol, opt.units_per_us, (unsigned long long)cs_units,
		    (unsigned long long)out_units, opt.lines, ok ? "true" : "false");
	else
		printf("threads           %u\n"
		       "sections/ms       %.1f\n"
		       "fairness factor   %.3f, Jain's index %.3f\n"
		       "per thread        min %llu max %llu\n"
		       "CPU (ms)          user %.0f system %.0f in %.0f\n"
		       "switches          voluntary %ld involuntary %ld\n"
		       "work units        inside %llu outside %llu, %.1f/us\n"
		       "mutual exclusion  %s\n",
		       opt.threads, (double)total / ms, fairness(n, opt.threads, total),
		       jain(n, opt.threads, total), (unsigned long long)n[0],
		       (unsigned long long)n[opt.threads - 1], user, sys, ms, vol, invol,
		       (unsigned long long)cs_units, (unsigned long long)out_units,
		       opt.units_per_us, ok ? "held" : "VIOLATED");
	if (opt.latency)
		report_latency();
	if (opt.steps)
		report_steps();
	if (opt.json)
		printf("}\n");
	free(n);
}

static bool data_adds_up(void)
{
	uint64_t total = 0, intrusions = 0;
	bool ok = true;

	for (unsigned i = 0; i < opt.threads; i++) {
		total += threads[i].sections;
		intrusions += threads[i].intrusions;
	}
	for (unsigned i = 0; i < opt.lines; i++)
		if (data.line[i].count != total) {
			fprintf(stderr, "mutex_bench: line %u counted %llu of %llu sections\n", i,
				(unsigned long long)data.line[i].count, (unsigned long long)total);
			ok = false;
		}
	if (intrusions) {
		fprintf(stderr, "mutex_bench: %llu sections saw another thread inside\n",
			(unsigned long long)intrusions);
		ok = false;
	}
	return ok;
}

static void fail(const char *what, int err)
{
	fprintf(stderr, "mutex_bench: %s: %s\n", what, strerror(err));
	exit(2);
}

static void usage(FILE *f)
{
	fputs(
	    "usage: mutex_bench [options]\n"
	    "  -t N         threads (2)\n"
	    "  -g N,N,...   so many threads one after the other in one run, growing; a window for each; what is\n"
	    "               reported beside is of the last\n"
	    "  -d SECONDS   measuring window (1)\n"
	    "  -w SECONDS   warm-up before it (0.1)\n"
	    "  -c NS        busy work inside the critical section, beside the cache lines\n"
	    "  -c lines     only the cache lines (default)\n"
	    "  -l N         cache lines read and written inside (2, at least 1, at most 64)\n"
	    "  -o NS        busy work outside (0)\n"
	    "  -O CYCLES    the same in ticks of the cycle counter (TSC)\n"
	    "  -u N         work units in a microsecond; without: calibrate at start\n"
	    "  -U           calibrate, print units in a microsecond, exit\n"
	    "  -k KIND      normal, adaptive, recursive or errorcheck; and pshared, robust, pi, as in robust+pshared\n"
	    "  -n           beside a mutex of the thread's own, which it has in hand meanwhile\n"
	    "  -b N         busy processes beside the benchmark (0)\n"
	    "  -L           histogram of the time to acquire (costs two clock reads a section)\n"
	    "  -j           one line of JSON\n",
	    f);
	exit(f == stdout ? 0 : 2);
}

/* A kind is one or several of these, with '+' between them. */
static void kind_of(char *s)
{
	static const struct {
		const char *name;
		int type, shared, robust, protocol;
	} kinds[] = {
	    {"normal", PTHREAD_MUTEX_DEFAULT, 0, 0, 0},
	    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0},
	    {"recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0},
	    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0},
	    {"pshared", 0, PTHREAD_PROCESS_SHARED, 0, 0},
	    {"robust", 0, 0, PTHREAD_MUTEX_ROBUST, 0},
	    {"pi", 0, 0, 0, PTHREAD_PRIO_INHERIT},
	};

	for (char *word = strtok(s, "+"); word; word = strtok(NULL, "+")) {
		unsigned i = 0, n = sizeof(kinds) / sizeof(kinds[0]);

		while (i < n && strcmp(word, kinds[i].name))
			i++;
		if (i == n) {
			fprintf(stderr, "mutex_bench: unknown kind '%s'\n", word);
			exit(2);
		}
		opt.kind |= kinds[i].type;
		opt.shared |= kinds[i].shared;
		opt.robust |= kinds[i].robust;
		opt.protocol |= kinds[i].protocol;
	}
}

static void steps_of(char *s)
{
	for (char *word = strtok(s, ","); word; word = strtok(NULL, ",")) {
		unsigned n = (unsigned)number(word, 1, 100000);

		if (opt.steps == MAX_STEPS || (opt.steps && n <= opt.step[opt.steps - 1])) {
			fprintf(
			    stderr,
			    "mutex_bench: -g wants at most %d numbers, each larger than the one before\n",
			    MAX_STEPS);
			exit(2);
		}
		opt.step[opt.steps++] = opt.threads = n;
	}
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:g:d:w:c:l:o:O:u:Uk:nb:Ljh")) != -1) {
		switch (c) {
		case 't': opt.threads = (unsigned)number(optarg, 1, 100000); break;
		case 'g': steps_of(optarg); break;
		case 'd': opt.seconds = number(optarg, 1e-3, 1e6); break;
		case 'w': opt.warm_up = number(optarg, 0, 1e6); break;
		case 'c': opt.cs_ns = strcmp(optarg, "lines") ? number(optarg, 0, 1e12) : 0; break;
		case 'l': opt.lines = (unsigned)number(optarg, 1, MAX_LINES); break;
		case 'o': opt.out_ns = number(optarg, 0, 1e12); break;
		case 'O': opt.out_cycles = number(optarg, 0, 1e12); break;
		case 'u': opt.units_per_us = number(optarg, 1e-3, 1e9); break;
		case 'U': printf("%.3f\n", calibrate_units_per_us()); exit(0);
		case 'k':
			opt.kind = opt.shared = opt.robust = opt.protocol = 0;
			kind_of(optarg);
			break;
		case 'n': opt.nested = true; break;
		case 'b': opt.hogs = (unsigned)number(optarg, 0, MAX_HOGS); break;
		case 'L': opt.latency = true; break;
		case 'j': opt.json = true; break;
		case 'h': usage(stdout); break;
		default: usage(stderr);
		}
	}
	if (optind < argc)
		usage(stderr);
}

static void set_work(void)
{
	double out_us = opt.out_ns / 1e3;

	if (opt.out_cycles > 0) {
		if (!HAVE_CYCLES) {
			fputs("mutex_bench: no cycle counter on this architecture; use -o\n",
			      stderr);
			exit(2);
		}
		out_us += opt.out_cycles / cycles_per_us();
	}
	if (opt.units_per_us <= 0 && (opt.cs_ns > 0 || out_us > 0))
		opt.units_per_us = calibrate_units_per_us();
	cs_units = (uint64_t)(opt.cs_ns / 1e3 * opt.units_per_us + 0.5);
	out_units = (uint64_t)(out_us * opt.units_per_us + 0.5);
}

static void make_mutex(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	int err = pthread_mutexattr_settype(&a, opt.kind);

	if (!err && opt.shared)
		err = pthread_mutexattr_setpshared(&a, opt.shared);
	if (!err && opt.robust)
		err = pthread_mutexattr_setrobust(&a, opt.robust);
	if (!err && opt.protocol)
		err = pthread_mutexattr_setprotocol(&a, opt.protocol);
	if (!err)
		err = pthread_mutex_init(&lock.m,
					 opt.kind || opt.shared || opt.robust || opt.protocol ?
					     &a :
					     NULL);
	if (err)
		fail("mutex", err);
	pthread_mutexattr_destroy(&a);
}

static void start_threads(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		threads[i].nr = i;
		pthread_mutex_init(&threads[i].own, NULL);
		if (opt.latency && !(threads[i].lat = calloc(1, sizeof(*threads[i].lat))))
			fail("memory", ENOMEM);
		int err = pthread_create(&threads[i].id, NULL, worker, &threads[i]);

		if (err)
			fail("pthread_create", err);
	}
}

static void window(struct snapshot *a, struct snapshot *b)
{
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	take_snapshot(a);
	__atomic_store_n(&phase.v, MEASURE, __ATOMIC_RELAXED);
	sleep_ns((uint64_t)(opt.seconds * 1e9));
	take_snapshot(b);
}

/* The papers' way: one run to which threads are added.  The last step's window stays in a and b. */
static void grow(struct snapshot *a, struct snapshot *b)
{
	for (unsigned i = 0; i < opt.steps; i++) {
		uint64_t sections = 0;

		start_threads(i ? opt.step[i - 1] : 0, opt.step[i]);
		window(a, b);
		for (unsigned t = 0; t < opt.threads; t++)
			sections += b->sections[t] - a->sections[t];
		step_per_ms[i] = (double)sections * 1e6 / (double)(b->ns - a->ns);
	}
}

int main(int argc, char **argv)
{
	pid_t hogs[MAX_HOGS];
	struct snapshot a, b;

	parse(argc, argv);
	set_work();
	make_mutex();
	threads = aligned_alloc(2 * CACHE_LINE, opt.threads * sizeof(*threads));
	a.sections = calloc(opt.threads, sizeof(uint64_t));
	b.sections = calloc(opt.threads, sizeof(uint64_t));
	if (!threads || !a.sections || !b.sections)
		fail("memory", ENOMEM);
	memset(threads, 0, opt.threads * sizeof(*threads));
	start_hogs(hogs, opt.hogs);
	if (opt.steps) {
		grow(&a, &b);
	} else {
		pthread_barrier_init(&start, NULL, opt.threads + 1);
		start_threads(0, opt.threads);
		pthread_barrier_wait(&start);
		window(&a, &b);
	}
	__atomic_store_n(&phase.v, STOP, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < opt.threads; i++)
		pthread_join(threads[i].id, NULL);
	end_hogs(hogs, opt.hogs);
	bool ok = data_adds_up();

	report(&a, &b, ok);
	return ok ? 0 : 1;
}
