/* SPDX-License-Identifier: MIT */
/*
 * A B+-tree index with a mutex in each leaf, up to 16 million of them, half reads and half updates,
 * keys by a self-similar distribution with skew 0.2: 80 % of the operations go to 20 % of the keys,
 * and so on, so that a dozen of all these locks are hot.  As PiBench in Laforet et al.,
 * "FlexGuard", SOSP 2025, section 5.3; Gray et al., "Quickly Generating Billion-Record Synthetic
 * Databases", SIGMOD 1994, for the distribution.
 *
 * The tree is built once; its inner nodes do not change.  The values must add up at the end.
 */
#include "app.h"

#include <math.h>

/* KEYS in a leaf.  Not varied. */
enum { FANOUT = 16, KEYS = 6, MAX_DEPTH = 8 };

struct leaf {
	pthread_mutex_t m;
	/* the leaf's first key and those that follow, one less than there are records */
	uint32_t key[KEYS];
	uint64_t value[KEYS];
};

struct inner {
	uint32_t first[FANOUT]; /* first key below each child */
};

static struct app_option options[] = {{'n', "leaves, each with a mutex", 1e6, 1, 2e7}, {0}};
static struct leaf *leaves;
static uint32_t nr_leaves;
static struct inner *level[MAX_DEPTH]; /* level[0] is the root */
static int depth;

static void build(void)
{
	uint64_t below = 1, n;

	leaves = app_memory((size_t)nr_leaves * sizeof(*leaves));
	for (uint32_t i = 0; i < nr_leaves; i++) {
		pthread_mutex_init(&leaves[i].m, NULL);
		for (int k = 0; k < KEYS; k++)
			leaves[i].key[k] = i * KEYS + (uint32_t)k;
	}
	while (below < nr_leaves) {
		below *= FANOUT;
		depth++;
	}
	for (int d = 0; d < depth; d++, below /= FANOUT) {
		n = (nr_leaves + below - 1) / below;
		level[d] = app_memory(n * sizeof(struct inner));
		for (uint64_t i = 0; i < n; i++)
			for (uint64_t c = 0; c < FANOUT; c++) {
				uint64_t leaf = i * below + c * (below / FANOUT);

				level[d][i].first[c] = leaf < nr_leaves ? (uint32_t)leaf * KEYS :
									  UINT32_MAX;
			}
	}
}

static struct leaf *find(uint32_t key)
{
	uint64_t node = 0;

	for (int d = 0; d < depth; d++) {
		const struct inner *in = &level[d][node];
		unsigned c = 1;

		while (c < FANOUT && in->first[c] <= key)
			c++;
		node = node * FANOUT + c - 1;
	}
	return &leaves[node];
}

static uint32_t draw(uint64_t *seed)
{
	static const double skew = 0.2;
	double u = app_uniform(seed), total = (double)nr_leaves * KEYS;

	return (uint32_t)(total * pow(u, log(skew) / log(1 - skew)));
}

/* Spread over the tree: neighbours in popularity are not neighbours in a leaf. */
static uint32_t scatter(uint32_t rank)
{
	return (uint32_t)((uint64_t)rank * 2654435761u % ((uint64_t)nr_leaves * KEYS));
}

static void *work_on(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t seed = me * 0x9e3779b97f4a7c15u + 1, n = 0, updates = 0, sum = 0;

	while (app_goes_on()) {
		uint32_t key = scatter(draw(&seed));
		struct leaf *l = find(key);
		int k = 0;

		pthread_mutex_lock(&l->m);
		while (k < KEYS - 1 && l->key[k] < key)
			k++;
		if (n % 2) {
			l->value[k]++;
			updates++;
		} else {
			sum += l->value[k];
		}
		pthread_mutex_unlock(&l->m);
		app_counts(me, ++n);
	}
	app_count[me].sum = updates + (sum == UINT64_MAX);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t ns, updates = 0, found = 0;
	double n;

	app_parse("index_bench", argc, argv, options);
	nr_leaves = (uint32_t)options[0].value;
	build();
	n = app_window(work_on, NULL, &ns);
	for (unsigned i = 0; i < app.threads; i++)
		updates += app_count[i].sum;
	for (uint32_t i = 0; i < nr_leaves; i++)
		for (int k = 0; k < KEYS; k++)
			found += leaves[i].value[k];
	return app_report("operations", n, ns, updates == found);
}
