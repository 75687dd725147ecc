/* SPDX-License-Identifier: MIT */
/* Priority-inheriting mutexes of every type, contended, timed, and not mixed up with others. */
#include "../tools/check.h"

static pthread_mutex_t m;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < 5000; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

static void *time_out(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 2000);

	return (void *)(long)pthread_mutex_timedlock(&m, &ts);
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutexattr_t a;
	pthread_t t[4];

	check_begin(argv[0], 30);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pthread_mutexattr_init(&a), 0);
		CHECK_EQ(pthread_mutexattr_settype(&a, types[i]), 0);
		CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
		CHECK_EQ(pthread_mutex_init(&m, &a), 0);
		count = 0;
		for (int j = 0; j < 4; j++)
			t[j] = start(work, NULL);
		for (int j = 0; j < 4; j++)
			join(t[j]);
		CHECK_EQ(count, 20000);
		lock(&m);
		CHECK_EQ(in_thread(time_out, NULL), ETIMEDOUT);
		CHECK_EQ(try_elsewhere(&m), EBUSY);
		if (types[i] == PTHREAD_MUTEX_RECURSIVE) {
			lock(&m);
			unlock(&m);
		} else if (types[i] == PTHREAD_MUTEX_ERRORCHECK) {
			CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
		}
		unlock(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
