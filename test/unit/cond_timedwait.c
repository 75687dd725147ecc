/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of both clocks, given by attribute or by call, private and process-shared: not before
 * time, the mutex held, EINVAL for nonsense, and then the mutex was never released.
 */
#include "../tools/check.h"

#include <stdatomic.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void expect_held(void)
{
	CHECK_EQ(try_elsewhere(&m), EBUSY);
}

static int wait_until(pthread_cond_t *c, int by_call, clockid_t clock, const struct timespec *ts)
{
	return by_call ? pthread_cond_clockwait(c, &m, clock, ts) :
			 pthread_cond_timedwait(c, &m, ts);
}

static atomic_int watching;

static void *watch(void *arg)
{
	long got = 0;

	(void)arg;
	while (atomic_load(&watching))
		if (pthread_mutex_trylock(&m) == 0) {
			got++;
			unlock(&m);
		}
	return (void *)got;
}

/* A glimpse is enough to let others in, so many are taken. */
static void expect_never_released(pthread_cond_t *c, int by_call, clockid_t clock)
{
	struct timespec ts = in_us(clock, 1000);
	pthread_t watcher;

	watching = 1;
	watcher = start(watch, NULL);
	for (int i = 0; i < 20000; i++) {
		ts.tv_nsec = i & 1 ? -1 : 1000000000;
		CHECK_EQ(wait_until(c, by_call, clock, &ts), EINVAL);
	}
	watching = 0;
	CHECK_EQ((long)join(watcher), 0);
}

static void exercise(pthread_cond_t *c, int by_call, clockid_t clock)
{
	static const long waits[] = {-1000000, -1, 0, 100, 5000};
	struct timespec ts;

	lock(&m);
	for (int i = 0; i < 5; i++) {
		int r;

		ts = in_us(clock, waits[i]);
		do {
			r = wait_until(c, by_call, clock, &ts);
		} while (r == 0);
		CHECK_EQ(r, ETIMEDOUT);
		CHECK(is_past(clock, ts));
		expect_held();
	}
	expect_never_released(c, by_call, clock);
	expect_held();
	ts = (struct timespec){-1, 0};
	CHECK_EQ(wait_until(c, by_call, clock, &ts), ETIMEDOUT);
	unlock(&m);
}

int main(int argc, char **argv)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec ts = in_us(CLOCK_MONOTONIC, 1000);

	check_begin(argv[0], 20);
	exercise(&c, 0, CLOCK_REALTIME);
	for (int way = 0; way < 4; way++) {
		int own = way & 1, shared = way >> 1;
		pthread_condattr_t a;
		pthread_cond_t d;

		CHECK_EQ(pthread_condattr_init(&a), 0);
		CHECK_EQ(pthread_condattr_setpshared(&a, shared), 0);
		CHECK_EQ(pthread_condattr_setclock(&a, clocks[own]), 0);
		CHECK_EQ(pthread_cond_init(&d, &a), 0);
		exercise(&d, 0, clocks[own]);
		exercise(&d, 1, CLOCK_REALTIME);
		exercise(&d, 1, CLOCK_MONOTONIC);
		CHECK_EQ(pthread_cond_destroy(&d), 0);
	}
	lock(&m);
	CHECK_EQ(pthread_cond_clockwait(&c, &m, CLOCK_PROCESS_CPUTIME_ID, &ts), EINVAL);
	CHECK_EQ(pthread_cond_clockwait(&c, &m, 12345, &ts), EINVAL);
	expect_held();
	unlock(&m);
	return 0;
}
