/* SPDX-License-Identifier: MIT */
/*
 * A barrier between phases of work.  A plain pthread program: the same binary
 * runs on glibc's barrier and, under LD_PRELOAD, on others.
 *
 *   ./barrier_bench -t 4 -c 10000 -i 20        phases of 10 us, uneven by up to 20 %
 *   ./barrier_bench -t 4 -c 10000 -l 8         and 8 short sections of a common mutex in each
 *
 * Each thread adds to a cell of its own in each phase and looks at its
 * neighbour's after the barrier; if a round let somebody through too early, or
 * had not exactly one serial thread, the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pinned.h"
#include "work.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_THREADS = 1024 };

struct thread {
	uint64_t rounds; /* read by the neighbour after a barrier */
	uint64_t serial, sink;
	pthread_t id;
	unsigned nr;
	bool wrong;
} OWN_LINES;

static struct {
	unsigned threads, uneven, sections;
	double seconds, warm_up, work_ns, units_per_us;
	bool json, pinned;
} opt = {.threads = 2, .seconds = 1.0, .warm_up = 0.1};

static struct thread threads[MAX_THREADS];
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t in_sections; /* guarded by mutex */
/* written by the serial thread between two barriers, read after the second */
static bool stop;
static bool stop_asked;

static void phase(struct thread *t, uint64_t units)
{
	uint64_t spread = units * opt.uneven / 100;
	/* Uneven in a way that changes from round to round, and is the same for all contenders. */
	uint64_t mine = units + (spread ? (t->nr * 7919 + t->rounds * 104729) % (spread + 1) : 0);

	t->sink = work(mine, t->sink);
	for (unsigned i = 0; i < opt.sections; i++) {
		pthread_mutex_lock(&mutex);
		in_sections++;
		pthread_mutex_unlock(&mutex);
	}
}

static void *run(void *arg)
{
	struct thread *t = arg, *next = &threads[(t->nr + 1) % opt.threads];
	uint64_t units = (uint64_t)(opt.work_ns * opt.units_per_us / 1000);

	for (;;) {
		phase(t, units);
		__atomic_store_n(&t->rounds, t->rounds + 1, __ATOMIC_RELAXED);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			t->serial++;
			stop = __atomic_load_n(&stop_asked, __ATOMIC_RELAXED);
		}
		/* It has arrived, and may be on its way to the second barrier. */
		t->wrong |= __atomic_load_n(&next->rounds, __ATOMIC_RELAXED) - t->rounds > 1;
		__atomic_store_n(&t->rounds, t->rounds + 1, __ATOMIC_RELAXED);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			t->serial++;
		if (stop)
			return NULL;
	}
}

static uint64_t rounds_now(void)
{
	return __atomic_load_n(&threads[0].rounds, __ATOMIC_RELAXED);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: barrier_bench [-t THREADS] [-d SECONDS] [-w WARM-UP] [-c NS] [-i PERCENT]\n"
		"                     [-l SECTIONS] [-u UNITS] [-P] [-j]\n"
		"  -c  work in a phase (0); a round is a phase and two barriers\n"
		"  -i  some threads work longer by up to so much (0)\n"
		"  -l  sections of a common mutex in each phase (0)\n"
		"  -P  each thread on a CPU of its own, in turn\n"
		"  -u  units of work in a microsecond (default: measured now)\n");
	return 2;
}

static bool parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:d:w:c:i:l:u:Pj")) != -1) {
		switch (c) {
		case 't': opt.threads = (unsigned)number(optarg, 0, 1e9); break;
		case 'd': opt.seconds = number(optarg, 0, 1e12); break;
		case 'w': opt.warm_up = number(optarg, 0, 1e12); break;
		case 'c': opt.work_ns = number(optarg, 0, 1e12); break;
		case 'i': opt.uneven = (unsigned)number(optarg, 0, 1e9); break;
		case 'l': opt.sections = (unsigned)number(optarg, 0, 1e9); break;
		case 'u': opt.units_per_us = number(optarg, 0, 1e12); break;
		case 'P': opt.pinned = true; break;
		case 'j': opt.json = true; break;
		default: return false;
		}
	}
	return opt.threads >= 1 && opt.threads <= MAX_THREADS && optind == argc;
}

static double cpu_s(const struct rusage *before, const struct rusage *after)
{
	return (double)(after->ru_utime.tv_sec - before->ru_utime.tv_sec + after->ru_stime.tv_sec -
			before->ru_stime.tv_sec) +
	       (double)(after->ru_utime.tv_usec - before->ru_utime.tv_usec +
			after->ru_stime.tv_usec - before->ru_stime.tv_usec) /
		   1e6;
}

int main(int argc, char **argv)
{
	struct rusage before, after;
	uint64_t r0, r1, t0, t1, serial = 0, rounds;
	bool wrong = false;

	if (!parse(argc, argv))
		return usage();
	if (opt.units_per_us <= 0)
		opt.units_per_us = calibrate_units_per_us();
	if (pthread_barrier_init(&barrier, NULL, opt.threads))
		abort();
	for (unsigned i = 0; i < opt.threads; i++) {
		threads[i].nr = i;
		if (pthread_create(&threads[i].id, pinned(opt.pinned, i), run, &threads[i]))
			abort();
	}
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	getrusage(RUSAGE_SELF, &before);
	r0 = rounds_now();
	t0 = now_ns();
	sleep_ns((uint64_t)(opt.seconds * 1e9));
	r1 = rounds_now();
	t1 = now_ns();
	getrusage(RUSAGE_SELF, &after);
	__atomic_store_n(&stop_asked, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < opt.threads; i++) {
		pthread_join(threads[i].id, NULL);
		wrong |= threads[i].wrong || threads[i].rounds != threads[0].rounds;
		serial += threads[i].serial;
	}
	rounds = threads[0].rounds;
	wrong |= serial != rounds || in_sections != rounds / 2 * opt.sections * opt.threads;
	if (pthread_barrier_destroy(&barrier))
		abort();

	/* 0: no round ended; how long one takes is not known. */
	double ns = (double)(t1 - t0), per_us = r1 > r0 ? ns / 1000 / ((double)(r1 - r0) / 2) : 0;
	double cpu = cpu_s(&before, &after);

	if (opt.json)
		printf(
		    "{\"threads\": %u, \"result\": %.3f, \"cpu_ms\": %.1f, \"window_ms\": %.1f, \"check\": %s}\n",
		    opt.threads, per_us, cpu * 1e3, ns / 1e6, wrong ? "false" : "true");
	else
		printf(
		    "threads           %u\nus a round        %.2f\nrounds/ms         %.2f\nCPUs used         %.2f\n"
		    "barriers          %s\n",
		    opt.threads, per_us, per_us > 0 ? 1000 / per_us : 0, cpu * 1e9 / ns,
		    wrong ? "BROKEN" : "held");
	return wrong;
}
