/* SPDX-License-Identifier: MIT */
/* Mutual exclusion: no increment is lost, whichever way threads lock; errno stays as it is. */
#include "api.h"

enum { THREADS = 8, ROUNDS = 30000 };
static fg_mutex_t m;
static volatile long count;

static void *work(void *arg)
{
	uint64_t s = rnd_seed((uintptr_t)arg);

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec at = in_us(CLOCK_MONOTONIC, 20);

		errno = 1234;
		switch (rnd_below(&s, 3)) {
		case 0: CHECK_EQ(fg_mutex_lock(&m), 0); break;
		case 1:
			while (fg_mutex_trylock(&m))
				sched_yield();
			break;
		default:
			while (fg_mutex_timedlock(&m, CLOCK_MONOTONIC, &at))
				;
		}
		count = count + 1;
		CHECK_EQ(fg_mutex_unlock(&m), 0);
		CHECK_EQ(errno, 1234);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const int kinds[] = {FG_MUTEX_NORMAL, FG_MUTEX_RECURSIVE, FG_MUTEX_ERRORCHECK,
				    FG_MUTEX_MOVABLE};

	api_begin(argv[0], 120);
	for (int k = 0; k < 4; k++) {
		pthread_t t[THREADS];
		int kind = kinds[k];

		CHECK_EQ(fg_mutex_init(&m, kind), 0);
		count = 0;
		for (int i = 0; i < THREADS; i++)
			t[i] = start(work, (void *)(intptr_t)i);
		for (int i = 0; i < THREADS; i++)
			join(t[i]);
		CHECK_EQ(count, THREADS * ROUNDS);
		CHECK_EQ(fg_mutex_destroy(&m), 0);
	}
	return 0;
}
