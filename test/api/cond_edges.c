/* SPDX-License-Identifier: MIT */
/*
 * Waits that end otherwise: time limits, what is no time, a mutex of somebody else, cancellation.
 */
#include "api.h"

static fg_mutex_t m;
static fg_cond_t c;
static int waiting, cleaned;

static void limits(void)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	struct timespec bad = {0, 1000000000};

	CHECK_EQ(fg_mutex_lock(&m), 0);
	for (int i = 0; i < 2; i++)
		for (long us = -1000; us <= 3000; us += 2000) {
			struct timespec at = in_us(clocks[i], us);

			CHECK_EQ(fg_cond_timedwait(&c, &m, clocks[i], &at), ETIMEDOUT);
			CHECK(is_past(clocks[i], at));
			CHECK_EQ(in_thread(api_try, &m), EBUSY);
		}
	CHECK_EQ(fg_cond_timedwait(&c, &m, CLOCK_MONOTONIC, &bad), EINVAL);
	bad.tv_nsec = 0;
	CHECK_EQ(fg_cond_timedwait(&c, &m, CLOCK_THREAD_CPUTIME_ID, &bad), EINVAL);
	CHECK_EQ(in_thread(api_try, &m), EBUSY);
	CHECK_EQ(fg_mutex_unlock(&m), 0);
}

static void not_owned(void)
{
	static const int kinds[] = {FG_MUTEX_RECURSIVE, FG_MUTEX_ERRORCHECK};

	for (int i = 0; i < 2; i++) {
		fg_mutex_t other;
		struct timespec at = in_us(CLOCK_REALTIME, 1000);

		CHECK_EQ(fg_mutex_init(&other, kinds[i]), 0);
		CHECK_EQ(fg_cond_wait(&c, &other), EPERM);
		CHECK_EQ(fg_cond_timedwait(&c, &other, CLOCK_REALTIME, &at), EPERM);
		CHECK_EQ(in_thread(api_try, &other), 0);
	}
	/* Signals find no thread that has left so. */
	CHECK_EQ(fg_cond_signal(&c), 0);
	CHECK_EQ(fg_cond_broadcast(&c), 0);
}

static void cleanup(void *arg)
{
	cleaned++;
	CHECK_EQ(fg_mutex_unlock(&m), 0);
}

static void *wait_for_ever(void *timed)
{
	struct timespec at = in_us(CLOCK_MONOTONIC, 1000000000);

	CHECK_EQ(fg_mutex_lock(&m), 0);
	pthread_cleanup_push(cleanup, NULL);
	STORE(waiting, 1);
	for (;;)
		CHECK_EQ(timed ? fg_cond_timedwait(&c, &m, CLOCK_MONOTONIC, &at) :
				 fg_cond_wait(&c, &m),
			 0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancelled(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		STORE(waiting, 0);
		cleaned = 0;
		t = start(wait_for_ever, i & 1 ? &m : NULL);
		UNTIL(LOAD(waiting));
		CHECK_EQ(fg_mutex_lock(&m), 0);
		CHECK_EQ(pthread_cancel(t), 0);
		sleep_us(100);
		CHECK_EQ(cleaned, 0);
		CHECK_EQ(fg_mutex_unlock(&m), 0);
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(cleaned, 1);
		CHECK_EQ(in_thread(api_try, &m), 0);
	}
}

int main(int argc, char **argv)
{
	api_begin(argv[0], 60);
	limits();
	not_owned();
	cancelled();
	CHECK_EQ(fg_cond_destroy(&c), 0);
	return 0;
}
