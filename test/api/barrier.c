/* SPDX-License-Identifier: MIT */
/*
 * A barrier lets nobody go before all have come, round after round; one of each round is told; it
 * may go then.  So it is at any alignment that its type may have, and where more threads come.
 */
#include "api.h"

enum { THREADS = 6, ROUNDS = 500, PAIRS = 20000 };
static fg_barrier_t *barrier;
static int arrived[ROUNDS], serial[ROUNDS];
static int plain; /* written by one thread a round, read by all in the next */

static void *take_part(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int r;

		ADD(arrived[i], 1);
		if (i % THREADS == (intptr_t)arg)
			plain = i;
		r = fg_barrier_wait(barrier);
		CHECK_EQ(LOAD(arrived[i]), THREADS);
		CHECK_EQ(plain, i);
		CHECK(r == 0 || r == FG_BARRIER_SERIAL);
		if (r)
			ADD(serial[i], 1);
		fg_barrier_wait(barrier); /* nobody writes `plain` before all have read it */
	}
	return NULL;
}

/* More threads than a round has participants: whoever comes first makes a pair. */
static int began, in_pairs, told;

static void *pair_up(void *arg)
{
	while (ADD(began, 1) <= 2 * PAIRS) {
		ADD(in_pairs, 1);
		if (fg_barrier_wait(barrier) == FG_BARRIER_SERIAL)
			ADD(told, 1);
	}
	return NULL;
}

static void *last_round(void *arg)
{
	/* Whoever is told destroys it, while others may be on their way out. */
	if (fg_barrier_wait(barrier) == FG_BARRIER_SERIAL) {
		CHECK_EQ(fg_barrier_destroy(barrier), 0);
		memset(barrier, 0x5a, sizeof(*barrier));
		free(barrier);
	}
	return NULL;
}

static void run(void *(*f)(void *))
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		t[i] = start(f, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
}

int main(int argc, char **argv)
{
	fg_barrier_t one;
	_Alignas(8) char bytes[sizeof(one) + _Alignof(fg_barrier_t)];

	api_begin(argv[0], 120);
	CHECK_EQ(fg_barrier_init(&one, 0), EINVAL);
	CHECK_EQ(fg_barrier_init(&one, 0x80000000u), EINVAL);
	CHECK_EQ(fg_barrier_init(&one, 1), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(fg_barrier_wait(&one), FG_BARRIER_SERIAL);
	CHECK_EQ(fg_barrier_destroy(&one), 0);

	for (size_t at = 0; at <= _Alignof(fg_barrier_t); at += _Alignof(fg_barrier_t)) {
		barrier = (fg_barrier_t *)(bytes + at);
		memset(arrived, 0, sizeof(arrived));
		memset(serial, 0, sizeof(serial));
		CHECK_EQ(fg_barrier_init(barrier, THREADS), 0);
		run(take_part);
		for (int i = 0; i < ROUNDS; i++)
			CHECK_EQ(serial[i], 1);
		CHECK_EQ(fg_barrier_destroy(barrier), 0);
	}

	barrier = malloc(sizeof(*barrier));
	CHECK_EQ(fg_barrier_init(barrier, 2), 0);
	run(pair_up);
	CHECK_EQ(in_pairs, 2 * PAIRS);
	CHECK_EQ(told, PAIRS);
	CHECK_EQ(fg_barrier_destroy(barrier), 0);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(fg_barrier_init(barrier, THREADS), 0);
		run(last_round);
		barrier = malloc(sizeof(*barrier));
	}
	free(barrier);
	return 0;
}
