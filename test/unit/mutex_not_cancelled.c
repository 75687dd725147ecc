/* SPDX-License-Identifier: MIT */
/* pthread_mutex_lock is no cancellation point, not even while it waits. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int started;

static void *work(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 10000000);

	STORE(started, 1);
	if (arg)
		CHECK_EQ(pthread_mutex_timedlock(&m, &ts), 0);
	else
		lock(&m);
	unlock(&m);
	return (void *)42;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (intptr_t i = 0; i < 40; i++) {
		pthread_t t;

		started = 0;
		lock(&m);
		t = start(work, (void *)(i & 1));
		UNTIL(LOAD(started));
		sleep_us(i & 2 ? 1000 : 50);
		CHECK_EQ(pthread_cancel(t), 0);
		sleep_us(200);
		unlock(&m);
		CHECK_EQ((long)join(t), 42);
	}
	return 0;
}
