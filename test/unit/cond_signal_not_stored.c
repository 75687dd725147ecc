/* SPDX-License-Identifier: MIT */
/* A signal or broadcast without a waiter has no effect on a later wait. */
#include "../tools/check.h"

int main(int argc, char **argv)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	int woken = 0;

	check_begin(argv[0], 20);
	for (int i = 0; i < 20; i++) {
		struct timespec ts;
		int r;

		for (int j = 0; j < 10; j++)
			CHECK_EQ(pthread_cond_signal(&c), 0);
		if (i & 1)
			CHECK_EQ(pthread_cond_broadcast(&c), 0);
		lock(&m);
		ts = in_us(CLOCK_REALTIME, 5000);
		r = pthread_cond_timedwait(&c, &m, &ts);
		CHECK(r == 0 || r == ETIMEDOUT);
		woken += r == 0; /* a spurious wake-up now and then is allowed */
		unlock(&m);
	}
	CHECK(woken <= 2);
	return 0;
}
