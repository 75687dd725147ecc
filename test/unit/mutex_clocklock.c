/* SPDX-License-Identifier: MIT */
/* clocklock on both clocks; EINVAL for others; a far deadline is no deadline. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};

static void *contend(void *arg)
{
	for (int c = 0; c < 2; c++) {
		static const long waits[] = {-1000000, 0, 100, 10000};
		struct timespec ts;

		for (int i = 0; i < 4; i++) {
			ts = in_us(clocks[c], waits[i]);
			CHECK_EQ(pthread_mutex_clocklock(&m, clocks[c], &ts), ETIMEDOUT);
			CHECK(is_past(clocks[c], ts));
		}
		ts.tv_nsec = 1000000000;
		ts.tv_sec += 1000;
		CHECK_EQ(pthread_mutex_clocklock(&m, clocks[c], &ts), EINVAL);
		ts.tv_nsec = -1;
		CHECK_EQ(pthread_mutex_clocklock(&m, clocks[c], &ts), EINVAL);
	}
	return NULL;
}

static void *get_it(void *arg)
{
	struct timespec ts = {INT64_MAX, 999999999};

	CHECK_EQ(pthread_mutex_clocklock(&m, *(const clockid_t *)arg, &ts), 0);
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec ts = in_us(CLOCK_MONOTONIC, 1000);

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &ts), EINVAL);
	CHECK_EQ(pthread_mutex_clocklock(&m, 12345, &ts), EINVAL);
	CHECK_EQ(pthread_mutex_trylock(&m), 0);
	join(start(contend, NULL));
	unlock(&m);
	for (int c = 0; c < 2; c++) {
		pthread_t t;

		ts = (struct timespec){0, 0};
		CHECK_EQ(pthread_mutex_clocklock(&m, clocks[c], &ts), 0);
		t = start(get_it, (void *)&clocks[c]);
		sleep_us(10000);
		unlock(&m);
		join(t);
	}
	return 0;
}
