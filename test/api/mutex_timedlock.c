/* SPDX-License-Identifier: MIT */
/*
 * A time limit on either clock: ETIMEDOUT not before it, the mutex if it is free, EINVAL for what
 * is no time.
 */
#include "api.h"

static fg_mutex_t m;
static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};

static void *times_out(void *arg)
{
	clockid_t clock = *(const clockid_t *)arg;

	for (long us = -1000; us <= 5000; us += 2000) {
		struct timespec at = in_us(clock, us);

		CHECK_EQ(fg_mutex_timedlock(&m, clock, &at), ETIMEDOUT);
		CHECK(is_past(clock, at));
	}
	return NULL;
}

static void *gets_it(void *arg)
{
	clockid_t clock = *(const clockid_t *)arg;
	struct timespec at = in_us(clock, 60000000);

	CHECK_EQ(fg_mutex_timedlock(&m, clock, &at), 0);
	CHECK_EQ(fg_mutex_unlock(&m), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec at = in_us(CLOCK_MONOTONIC, 1000), bad = at;

	api_begin(argv[0], 60);
	for (int i = 0; i < 2; i++) {
		struct timespec past = {0, 0};

		CHECK_EQ(fg_mutex_timedlock(&m, clocks[i], &past), 0);
		in_thread(times_out, (void *)&clocks[i]);
		for (int k = 0; k < 20; k++) {
			pthread_t t = start(gets_it, (void *)&clocks[i]);

			sleep_us(k * 50);
			CHECK_EQ(fg_mutex_unlock(&m), 0);
			join(t);
			CHECK_EQ(fg_mutex_lock(&m), 0);
		}
		CHECK_EQ(fg_mutex_unlock(&m), 0);
	}
	CHECK_EQ(fg_mutex_timedlock(&m, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
	CHECK_EQ(fg_mutex_timedlock(&m, -1, &at), EINVAL);
	bad.tv_nsec = -1;
	CHECK_EQ(fg_mutex_timedlock(&m, CLOCK_MONOTONIC, &bad), EINVAL);
	bad.tv_nsec = 1000000000;
	CHECK_EQ(fg_mutex_timedlock(&m, CLOCK_MONOTONIC, &bad), EINVAL);
	CHECK_EQ(in_thread(api_try, &m), 0); /* and did not take it */
	return 0;
}
