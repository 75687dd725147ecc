/* SPDX-License-Identifier: MIT */
/*
 * A hundred thousand locks, ten thousand of them held at once by one thread, released in any order.
 */
#include "../tools/check.h"

enum { LOCKS = 100000, HELD = 10000 };

int main(int argc, char **argv)
{
	pthread_mutex_t *m = calloc(LOCKS, sizeof *m);
	int *order = calloc(HELD, sizeof *order);
	uint64_t rng;

	check_begin(argv[0], 20);
	rng = rnd_seed(0);
	for (int i = 0; i < LOCKS; i++) {
		lock(&m[i]);
		unlock(&m[i]);
	}
	for (int i = 0; i < HELD; i++) {
		order[i] = i * (LOCKS / HELD);
		lock(&m[order[i]]);
	}
	CHECK_EQ(try_elsewhere(&m[0]), EBUSY);
	CHECK_EQ(try_elsewhere(&m[1]), 0);
	for (int i = HELD; i > 0; i--) {
		int j = (int)rnd_below(&rng, i), k = order[j];

		order[j] = order[i - 1];
		unlock(&m[k]);
	}
	for (int i = 0; i < LOCKS; i++) {
		CHECK_EQ(pthread_mutex_trylock(&m[i]), 0);
		unlock(&m[i]);
		CHECK_EQ(pthread_mutex_destroy(&m[i]), 0);
	}
	return 0;
}
