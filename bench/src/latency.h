/* SPDX-License-Identifier: MIT */
/*
 * How long acquisitions took: a log-linear histogram, 2^LATENCY_SUB_BITS buckets to each power of
 * two of ns.
 */
#ifndef FG_BENCH_LATENCY_H
#define FG_BENCH_LATENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	LATENCY_SUB_BITS = 3,
	LATENCY_SUB = 1 << LATENCY_SUB_BITS,
	LATENCY_BUCKETS = (64 - LATENCY_SUB_BITS + 1) * LATENCY_SUB
};

struct latencies { /* of one thread, until it has ended */
	uint64_t max;
	uint64_t n[LATENCY_BUCKETS];
};

static unsigned latency_bucket(uint64_t ns)
{
	if (ns < LATENCY_SUB)
		return (unsigned)ns;
	unsigned e = 63u - (unsigned)__builtin_clzll(ns);

	return (e - LATENCY_SUB_BITS + 1) * LATENCY_SUB +
	       (unsigned)((ns >> (e - LATENCY_SUB_BITS)) & (LATENCY_SUB - 1));
}

static uint64_t latency_low(unsigned b)
{
	if (b < LATENCY_SUB)
		return b;
	return (uint64_t)(LATENCY_SUB + b % LATENCY_SUB) << (b / LATENCY_SUB - 1);
}

static void latency_add(struct latencies *l, uint64_t ns)
{
	l->n[latency_bucket(ns)]++;
	if (ns > l->max)
		l->max = ns;
}

static void latency_merge(struct latencies *all, const struct latencies *l)
{
	for (unsigned b = 0; b < LATENCY_BUCKETS; b++)
		all->n[b] += l->n[b];
	if (l->max > all->max)
		all->max = l->max;
}

static uint64_t latency_percentile(const struct latencies *l, uint64_t total, double p)
{
	uint64_t want = (uint64_t)(p * (double)total), seen = 0, v;

	for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
		seen += l->n[b];
		if (l->n[b] && seen > want) {
			v = (latency_low(b) + latency_low(b + 1)) / 2;
			return v > l->max ? l->max : v;
		}
	}
	return 0;
}

/* As a member of a JSON object that is open, or as lines. */
static void latency_report(const struct latencies *l, bool json)
{
	static const struct {
		double p;
		const char *name;
	} want[] = {{0.5, "p50"}, {0.99, "p99"}, {0.999, "p99.9"}};
	uint64_t log2[64] = {0}, total = 0;
	unsigned last = 0;

	/* log2[e]: acquisitions that took [2^e, 2^(e+1)) ns, 0 ns with 1 ns */
	for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
		uint64_t low = latency_low(b);

		if (!l->n[b])
			continue;
		total += l->n[b];
		last = low ? 63u - (unsigned)__builtin_clzll(low) : 0;
		log2[last] += l->n[b];
	}
	printf(json ? ", \"latency_ns\": {" : "acquire (ns)     ");
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		printf(json ? "\"%s\": %llu, " : " %s %llu", want[i].name,
		       (unsigned long long)latency_percentile(l, total, want[i].p));
	printf(json ? "\"max\": %llu, \"samples\": %llu, \"log2\": [" : " max %llu, %llu samples\n",
	       (unsigned long long)l->max, (unsigned long long)total);
	for (unsigned e = 0; e <= last; e++) {
		if (json)
			printf("%s%llu", e ? ", " : "", (unsigned long long)log2[e]);
		else if (log2[e])
			printf("  %12llu ns  %llu\n", 1ull << e, (unsigned long long)log2[e]);
	}
	if (json)
		printf("]}");
}

#endif
