/* SPDX-License-Identifier: MIT */
/*
 * Twenty thousand threads in the life of a process, a few at a time, each of which locks and waits.
 */
#include "../tools/check.h"

enum { THREADS = 20000, AT_ONCE = 8 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static long count;

static void *work(void *arg)
{
	lock(&m);
	*(volatile long *)&count += 1;
	if (!((intptr_t)arg & 7)) {
		struct timespec ts = in_us(CLOCK_REALTIME, 1);

		pthread_cond_timedwait(&c, &m, &ts);
	} else {
		pthread_cond_signal(&c);
	}
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[AT_ONCE];

	check_begin(argv[0], 60);
	for (intptr_t i = 0; i < THREADS; i++) {
		if (i >= AT_ONCE)
			join(t[i % AT_ONCE]);
		t[i % AT_ONCE] = start(work, (void *)i);
	}
	for (int i = 0; i < AT_ONCE; i++)
		join(t[i]);
	CHECK_EQ(count, THREADS);
	return 0;
}
