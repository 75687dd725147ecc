/* SPDX-License-Identifier: MIT */
/*
 * timedlock: ETIMEDOUT after the deadline and not before, EINVAL for bad nanoseconds, success on a
 * free lock whatever the deadline.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *arg)
{
	static const long waits[] = {-1000000, -1, 0, 1, 100, 3000, 30000};
	struct timespec ts;

	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
		ts = in_us(CLOCK_REALTIME, waits[i]);
		CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
		CHECK(is_past(CLOCK_REALTIME, ts));
	}
	ts = (struct timespec){0, 0};
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	ts = (struct timespec){-1, 0};
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	ts = in_us(CLOCK_REALTIME, 1000000);
	ts.tv_nsec = -1;
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), EINVAL);
	ts.tv_nsec = 1000000000;
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), EINVAL);
	ts.tv_sec = -1; /* wrong twice: glibc says that it is over */
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	return NULL;
}

static void *get_it(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 15000000);

	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), 0);
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec ts = {0, 0};
	pthread_t t;

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), 0); /* free: the past does not matter */
	join(start(contend, NULL));
	/* A normal mutex that its owner takes again waits for itself. */
	ts = in_us(CLOCK_REALTIME, 2000);
	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	CHECK(is_past(CLOCK_REALTIME, ts));
	t = start(get_it, NULL);
	sleep_us(20000);
	unlock(&m);
	join(t);
	CHECK_EQ(pthread_mutex_trylock(&m), 0);
	unlock(&m);
	return 0;
}
