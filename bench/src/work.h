/* SPDX-License-Identifier: MIT */
/*
 * What the benchmarks share: numbers on the command line, a clock, busy work in
 * calibrated units, and the host's cycle counter.
 *
 * Busy work is a chain of dependent multiplications, counted in steps ("units").
 * It reads no clock: a thread that loses its CPU half-way has done half of its
 * work, and does the other half when it is back.  Units become time through one
 * calibration on an idle CPU, shared by all contenders of a comparison.
 */
#ifndef FG_BENCH_WORK_H
#define FG_BENCH_WORK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CACHE_LINE 64

/* Adjacent-line prefetchers pull lines in pairs; data of different writers lies two apart. */
#define OWN_LINES __attribute__((aligned(2 * CACHE_LINE)))

/* An option's. */
__attribute__((unused)) static double number(const char *s, double low, double high)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v >= low && v <= high)) {
		fprintf(stderr, "%s: '%s' is not a number from %g to %g\n",
			program_invocation_short_name, s, low, high);
		exit(2);
	}
	return v;
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts))
		;
}

/* Not inlined and aligned: the loop that was calibrated is the loop that runs. */
__attribute__((noinline, aligned(64), unused)) static uint64_t work(uint64_t units, uint64_t x)
{
	while (units--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static inline int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Units of work in a microsecond.  The 10th percentile of many short batches:
 * interrupts and preemption only lengthen a batch, and the very best one may be
 * a rare burst of the clock rate.
 */
__attribute__((unused)) static double calibrate_units_per_us(void)
{
	enum { BATCHES = 2000, UNITS = 20000 }; /* some 20 us each; not varied */
	static uint64_t t[BATCHES];
	uint64_t x = 1;

	for (int i = 0; i < BATCHES; i++) {
		uint64_t t0 = now_ns();

		x = work(UNITS, x);
		t[i] = now_ns() - t0;
	}
	qsort(t, BATCHES, sizeof(t[0]), cmp_u64);
	return UNITS * 1000.0 / (double)t[BATCHES / 10];
}

#if defined(__x86_64__)
#define HAVE_CYCLES 1
static inline uint64_t cycles(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}
#elif defined(__aarch64__)
#define HAVE_CYCLES 1
static inline uint64_t cycles(void)
{
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}
#else
#define HAVE_CYCLES 0
static inline uint64_t cycles(void)
{
	return 0;
}
#endif

#define CYCLES_NS 20000000u /* not varied */

/* Ticks of the cycle counter (constant rate) in a microsecond; 0 where there is none. */
__attribute__((unused)) static double cycles_per_us(void)
{
	uint64_t t0 = now_ns(), c0 = cycles();

	sleep_ns(CYCLES_NS);
	uint64_t t1 = now_ns(), c1 = cycles();

	return (double)(c1 - c0) * 1000.0 / (double)(t1 - t0);
}

#endif
