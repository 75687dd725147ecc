/* SPDX-License-Identifier: MIT */
/*
 * A hash table with a mutex for each bucket, and keys by a Zipf distribution whose most popular key
 * changes from time to time: a few locks are contended, and not the same ones for long.  As the hash-table
 * microbenchmark of Laforet et al., "FlexGuard", SOSP 2025, section 5.3.
 *
 * An operation looks a key up in its bucket's list, and every second one counts it.  At the end the counts
 * must add up, or the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "work.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum phase { WARM_UP, MEASURE, STOP };

struct entry {
	struct entry *next;
	uint64_t key, count;
};

struct bucket {
	pthread_mutex_t m;
	struct entry *first;
} OWN_LINES;

struct thread {
	uint64_t operations; /* written by the thread, read by main */
	uint64_t counted, seed;
	pthread_t id;
} OWN_LINES;

static struct {
	unsigned threads, buckets, values, shifts;
	double seconds, warm_up, alpha;
	bool json;
} opt = {.threads = 2, .buckets = 100, .values = 10000, .shifts = 40, .seconds = 1, .warm_up = 0.1, .alpha = 1.2};

static struct bucket *buckets;
static double *cumulated; /* of the distribution, by rank */
static struct thread *threads;
static struct {
	int phase;
	uint64_t shift; /* added to the rank: which keys are popular now */
} now OWN_LINES;

static uint64_t scatter(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static struct bucket *bucket_of(uint64_t key)
{
	return &buckets[scatter(key) % opt.buckets];
}

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

static unsigned rank_at(double p)
{
	unsigned low = 0, high = opt.values - 1;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (cumulated[mid] < p)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void operate(struct thread *t, uint64_t key, bool count)
{
	struct bucket *b = bucket_of(key);
	struct entry *e;

	pthread_mutex_lock(&b->m);
	for (e = b->first; e->key != key; e = e->next)
		;
	if (count)
		e->count++;
	pthread_mutex_unlock(&b->m);
	t->counted += count;
}

static void *worker(void *arg)
{
	struct thread *t = arg;
	uint64_t n = 0;

	while (__atomic_load_n(&now.phase, __ATOMIC_RELAXED) != STOP) {
		uint64_t key = (rank_at(uniform(&t->seed)) + __atomic_load_n(&now.shift, __ATOMIC_RELAXED)) % opt.values;

		operate(t, key, n % 2);
		__atomic_store_n(&t->operations, ++n, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void fill(void)
{
	struct entry *e = calloc(opt.values, sizeof(*e));
	double sum = 0;

	buckets = aligned_alloc(2 * CACHE_LINE, opt.buckets * sizeof(*buckets));
	cumulated = malloc(opt.values * sizeof(*cumulated));
	threads = aligned_alloc(2 * CACHE_LINE, opt.threads * sizeof(*threads));
	if (!e || !buckets || !cumulated || !threads) {
		fprintf(stderr, "hash_bench: %s\n", strerror(ENOMEM));
		exit(2);
	}
	memset(threads, 0, opt.threads * sizeof(*threads));
	for (unsigned i = 0; i < opt.buckets; i++) {
		buckets[i].first = NULL;
		pthread_mutex_init(&buckets[i].m, NULL);
	}
	for (uint64_t key = 0; key < opt.values; key++, e++) {
		struct bucket *b = bucket_of(key);

		*e = (struct entry){b->first, key, 0};
		b->first = e;
		cumulated[key] = sum += pow((double)key + 1, -opt.alpha);
	}
	for (unsigned i = 0; i < opt.values; i++)
		cumulated[i] /= sum;
}

static uint64_t operations(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < opt.threads; i++)
		n += __atomic_load_n(&threads[i].operations, __ATOMIC_RELAXED);
	return n;
}

static bool adds_up(void)
{
	uint64_t counted = 0, found = 0;

	for (unsigned i = 0; i < opt.threads; i++)
		counted += threads[i].counted;
	for (unsigned i = 0; i < opt.buckets; i++)
		for (struct entry *e = buckets[i].first; e; e = e->next)
			found += e->count;
	if (found != counted)
		fprintf(stderr, "hash_bench: %llu counted of %llu\n", (unsigned long long)found, (unsigned long long)counted);
	return found == counted;
}

static void usage(FILE *f)
{
	fputs("usage: hash_bench [options]\n"
	      "  -t N         threads (2)\n"
	      "  -d SECONDS   measuring window (1)\n"
	      "  -w SECONDS   warm-up before it (0.1)\n"
	      "  -b N         buckets, each with a mutex (100)\n"
	      "  -v N         values (10000)\n"
	      "  -a ALPHA     of the Zipf distribution (1.2)\n"
	      "  -s N         changes of the popular keys in the window (40)\n"
	      "  -j           one line of JSON\n",
	      f);
	exit(f == stdout ? 0 : 2);
}

static double number(const char *s, double low, double high)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v >= low && v <= high)) {
		fprintf(stderr, "hash_bench: '%s' is not a number from %g to %g\n", s, low, high);
		exit(2);
	}
	return v;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:d:w:b:v:a:s:jh")) != -1) {
		switch (c) {
		case 't': opt.threads = (unsigned)number(optarg, 1, 100000); break;
		case 'd': opt.seconds = number(optarg, 0.01, 3600); break;
		case 'w': opt.warm_up = number(optarg, 0, 3600); break;
		case 'b': opt.buckets = (unsigned)number(optarg, 1, 1e7); break;
		case 'v': opt.values = (unsigned)number(optarg, 1, 1e8); break;
		case 'a': opt.alpha = number(optarg, 0, 20); break;
		case 's': opt.shifts = (unsigned)number(optarg, 0, 1e6); break;
		case 'j': opt.json = true; break;
		case 'h': usage(stdout); break;
		default: usage(stderr);
		}
	}
	if (optind != argc)
		usage(stderr);
}

int main(int argc, char **argv)
{
	uint64_t t0, t1, n0, n1, seed = 42;
	bool ok;

	parse(argc, argv);
	fill();
	for (unsigned i = 0; i < opt.threads; i++) {
		threads[i].seed = scatter(i + 1);
		if (pthread_create(&threads[i].id, NULL, worker, &threads[i])) {
			fprintf(stderr, "hash_bench: cannot make %u threads\n", opt.threads);
			return 2;
		}
	}
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	t0 = now_ns();
	n0 = operations();
	for (unsigned i = 0; i <= opt.shifts; i++) {
		sleep_ns((uint64_t)(opt.seconds * 1e9 / (opt.shifts + 1)));
		__atomic_store_n(&now.shift, (uint64_t)(uniform(&seed) * opt.values), __ATOMIC_RELAXED);
	}
	t1 = now_ns();
	n1 = operations();
	__atomic_store_n(&now.phase, STOP, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < opt.threads; i++)
		pthread_join(threads[i].id, NULL);
	ok = adds_up();
	printf(opt.json ? "{\"threads\": %u, \"per_ms\": %.3f, \"window_ms\": %.3f, \"check\": %s}\n" :
			  "threads        %u\noperations/ms  %.1f\nwindow (ms)    %.0f\nmutual exclusion %s\n",
	       opt.threads, (double)(n1 - n0) * 1e6 / (double)(t1 - t0), (double)(t1 - t0) / 1e6,
	       opt.json ? (ok ? "true" : "false") : (ok ? "held" : "VIOLATED"));
	return !ok;
}
