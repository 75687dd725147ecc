/* SPDX-License-Identifier: MIT */
/*
 * Which lock an operation takes: any of them; or as in Laforet et al., "FlexGuard", SOSP 2025: by a
 * Zipf distribution whose most popular key changes (section 5.2, the hash table), or by a
 * self-similar one (section 5.3, the index; Gray et al., "Quickly Generating Billion-Record
 * Synthetic Databases", SIGMOD 1994).  bench/src/hash_bench.c and index_bench.c draw alike.
 */
#include "objects/objects.h"

#include <math.h>

/* The artifact's; its four changes a second come each 2.5 ms here, where a run has 10. */
#define VALUES	100000
#define ALPHA	10
#define CHANGES (5 * MS / 2)
#define SKEW	0.2 /* so much of the keys has 1 - SKEW of the operations, and so on */

static double cumulated[VALUES]; /* by rank */

static UNSEEN uint64_t scatter(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static UNSEEN double uniform(void)
{
	return (double)rng() / (double)(1ull << 48);
}

static UNSEEN void fill(void)
{
	double sum = 0;

	for (int i = 0; i < VALUES; i++)
		cumulated[i] = sum += pow(i + 1, -ALPHA);
	for (int i = 0; i < VALUES; i++)
		cumulated[i] /= sum;
}

static UNSEEN uint64_t zipf_rank(void)
{
	unsigned low = 0, high = VALUES - 1;
	double p = uniform();

	if (!cumulated[0])
		fill();
	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (cumulated[mid] < p)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

UNSEEN int load_which(void)
{
	uint64_t locks = (uint64_t)load.locks, key;

	if (locks == 1)
		return 0;
	switch (load.keys) {
	case KEYS_ZIPF: /* each lock has a range of the values */
		key = (zipf_rank() + scatter(1 + now() / CHANGES)) % VALUES;
		return (int)(key * locks / VALUES);
	case KEYS_SELF_SIMILAR: /* what is popular is not all in one place */
		key = (uint64_t)((double)locks * pow(uniform(), log(SKEW) / log(1 - SKEW)));
		return (int)(key * 2654435761u % locks);
	case KEYS_UNIFORM: break;
	}
	return (int)(rng() % locks);
}
