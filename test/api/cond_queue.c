/* SPDX-License-Identifier: MIT */
/*
 * Producers and consumers of a queue with few places: every item arrives once, nobody is left
 * asleep.
 */
#include "api.h"

enum { SIDES = 4, ITEMS = 4000, PLACES = 2 };
static fg_mutex_t m = FG_MUTEX_INIT;
static fg_cond_t not_full = FG_COND_INIT, not_empty;
static int queue[PLACES], filled, put, got;
static char seen[SIDES * ITEMS];

static void *produce(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		CHECK_EQ(fg_mutex_lock(&m), 0);
		while (filled == PLACES)
			CHECK_EQ(fg_cond_wait(&not_full, &m), 0);
		queue[filled++] = put++;
		CHECK_EQ(fg_cond_signal(&not_empty), 0);
		CHECK_EQ(fg_mutex_unlock(&m), 0);
	}
	return NULL;
}

static void *consume(void *arg)
{
	for (int i = 0; i < ITEMS; i++) {
		CHECK_EQ(fg_mutex_lock(&m), 0);
		while (!filled) {
			struct timespec at = in_us(CLOCK_MONOTONIC, 200);
			int r = i & 1 ? fg_cond_timedwait(&not_empty, &m, CLOCK_MONOTONIC, &at) :
					fg_cond_wait(&not_empty, &m);

			CHECK(r == 0 || (r == ETIMEDOUT && is_past(CLOCK_MONOTONIC, at)));
		}
		seen[queue[--filled]]++;
		got++;
		CHECK_EQ(fg_mutex_unlock(&m), 0);
		CHECK_EQ(fg_cond_broadcast(&not_full), 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[2 * SIDES];

	api_begin(argv[0], 120);
	CHECK_EQ(fg_cond_init(&not_empty), 0);
	for (int i = 0; i < 2 * SIDES; i++)
		t[i] = start(i & 1 ? produce : consume, NULL);
	for (int i = 0; i < 2 * SIDES; i++)
		join(t[i]);
	CHECK_EQ(got, SIDES * ITEMS);
	for (int i = 0; i < SIDES * ITEMS; i++)
		CHECK_EQ(seen[i], 1);
	CHECK_EQ(fg_cond_destroy(&not_empty), 0);
	CHECK_EQ(fg_cond_destroy(&not_full), 0);
	return 0;
}
