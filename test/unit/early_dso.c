/* SPDX-License-Identifier: MIT */
/*
 * For early_locks: a library that uses threads and locks in its constructor, and locks in its
 * destructor.
 */
#include "../tools/check.h"

pthread_mutex_t early_mutex = PTHREAD_MUTEX_INITIALIZER;
long early_count;
int early_threads = 4;

static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int here;

static void *work(void *arg)
{
	lock(&early_mutex);
	if (++here == early_threads)
		pthread_cond_broadcast(&c);
	while (here < early_threads)
		pthread_cond_wait(&c, &early_mutex);
	unlock(&early_mutex);
	for (int i = 0; i < 1000; i++) {
		lock(&early_mutex);
		*(volatile long *)&early_count += 1;
		unlock(&early_mutex);
	}
	return NULL;
}

__attribute__((constructor(101))) static void begin(void)
{
	pthread_t t[4];

	check_watchdog(20);
	for (int i = 0; i < early_threads; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < early_threads; i++)
		join(t[i]);
}

__attribute__((destructor(101))) static void end(void)
{
	lock(&early_mutex);
	unlock(&early_mutex);
}
