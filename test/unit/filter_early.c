/* SPDX-License-Identifier: MIT */
/*
 * A library's constructor, before those of the preload library, has installed a filter
 * (early_filter.c), without a lock taken before: nothing that it kills for is called, not even to
 * learn whether there is a filter.
 */
#include "../tools/check.h"

#define THREADS 4
#define ROUNDS	2000

extern int early_filter_error;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long sum;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&mutex);
		sum++;
		for (volatile int k = 0; k < (i % 64 ? 50 : 50000); k++)
			;
		unlock(&mutex);
	}
	lock(&mutex);
	while (sum < THREADS * ROUNDS)
		CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
	CHECK_EQ(pthread_cond_broadcast(&cond), 0);
	unlock(&mutex);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	check_begin(argv[0], 30);
	if (early_filter_error)
		check_skip("no seccomp here");
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	return 0;
}
