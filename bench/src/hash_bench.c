/* SPDX-License-Identifier: MIT */
/*
 * A hash table with a mutex for each bucket, and keys by a Zipf distribution whose most popular key
 * changes from time to time: a few locks are contended, and not the same ones for long.  The
 * hash-table microbenchmark of Laforet et al., "FlexGuard", SOSP 2025, section 5.2; what the paper
 * does not say is as in its artifact: alpha 10, 100,000 values, of which each bucket has a range
 * and a table of its own, four changes a second, every second operation writes, nothing outside the
 * lock.
 *
 * An operation looks a key up in its bucket's table, and every second one counts it.  At the end
 * the counts must add up, or the exit status is 1.
 */
#include "app.h"

#include <math.h>

struct entry {
	struct entry *next;
	uint64_t key, count;
};

struct bucket {
	pthread_mutex_t m;
	struct entry **chain;
} OWN_LINES;

enum { BUCKETS, VALUES, ALPHA, SHIFTS };
static struct app_option options[] = {{'b', "buckets, each with a mutex", 100, 1, 1e7},
				      {'v', "values", 100000, 1, 1e8},
				      {'a', "alpha of the Zipf distribution", 10, 0, 20},
				      {'s', "changes of the popular keys a second", 4, 0, 1e6},
				      {0}};
static unsigned nr_buckets, nr_values, nr_chains, nr_shifts;
static struct bucket *buckets;
static double *cumulated; /* of the distribution, by rank */
static struct {
	uint64_t shift; /* added to the rank: which keys are popular now */
} now OWN_LINES;

static uint64_t scatter(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static struct bucket *bucket_of(uint64_t key)
{
	return &buckets[key * nr_buckets / nr_values];
}

static struct entry **chain_of(const struct bucket *b, uint64_t key)
{
	return &b->chain[scatter(key) % nr_chains];
}

static unsigned rank_at(double p)
{
	unsigned low = 0, high = nr_values - 1;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (cumulated[mid] < p)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void operate(uint64_t key, bool count)
{
	struct bucket *b = bucket_of(key);
	struct entry *e;

	pthread_mutex_lock(&b->m);
	for (e = *chain_of(b, key); e->key != key; e = e->next)
		;
	if (count)
		e->count++;
	pthread_mutex_unlock(&b->m);
}

static void *worker(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t n = 0, counted = 0, seed = scatter(me + 1);

	while (app_goes_on()) {
		uint64_t key = (rank_at(app_uniform(&seed)) +
				__atomic_load_n(&now.shift, __ATOMIC_RELAXED)) %
			       nr_values;

		operate(key, n % 2);
		counted += n % 2;
		app_counts(me, ++n);
	}
	app_count[me].sum = counted;
	return NULL;
}

static void shift_keys(void)
{
	uint64_t seed = 42;

	for (unsigned i = 0; i <= nr_shifts; i++) {
		sleep_ns((uint64_t)(app.seconds * 1e9 / (nr_shifts + 1)));
		__atomic_store_n(&now.shift, (uint64_t)(app_uniform(&seed) * nr_values),
				 __ATOMIC_RELAXED);
	}
}

static void fill(void)
{
	struct entry *e = app_memory(nr_values * sizeof(*e));
	double sum = 0;

	/* A third more chains than values. */
	nr_chains = nr_values / nr_buckets * 4 / 3 + 1;
	struct entry **chain = app_memory((size_t)nr_buckets * nr_chains * sizeof(*chain));

	buckets = app_memory(nr_buckets * sizeof(*buckets));
	cumulated = app_memory(nr_values * sizeof(*cumulated));
	for (unsigned i = 0; i < nr_buckets; i++, chain += nr_chains) {
		buckets[i].chain = chain;
		pthread_mutex_init(&buckets[i].m, NULL);
	}
	for (uint64_t key = 0; key < nr_values; key++, e++) {
		struct entry **first = chain_of(bucket_of(key), key);

		*e = (struct entry){*first, key, 0};
		*first = e;
		cumulated[key] = sum += pow((double)key + 1, -options[ALPHA].value);
	}
	for (unsigned i = 0; i < nr_values; i++)
		cumulated[i] /= sum;
}

static bool adds_up(void)
{
	uint64_t counted = 0, found = 0;

	for (unsigned i = 0; i < app.threads; i++)
		counted += app_count[i].sum;
	for (size_t i = 0; i < (size_t)nr_buckets * nr_chains; i++)
		for (struct entry *e = buckets[0].chain[i]; e; e = e->next)
			found += e->count;
	if (found != counted)
		fprintf(stderr, "hash_bench: %llu counted of %llu\n", (unsigned long long)found,
			(unsigned long long)counted);
	return found == counted;
}

int main(int argc, char **argv)
{
	uint64_t ns;
	double n;

	app_parse("hash_bench", argc, argv, options);
	nr_buckets = (unsigned)options[BUCKETS].value;
	nr_values = (unsigned)options[VALUES].value;
	nr_shifts = (unsigned)(options[SHIFTS].value * app.seconds + 0.5);
	fill();
	n = app_window(worker, shift_keys, &ns);
	return app_report("operations", n, ns, adds_up());
}
