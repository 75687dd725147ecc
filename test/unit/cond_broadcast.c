/* SPDX-License-Identifier: MIT */
/* A broadcast wakes everybody who waits, three hundred of them, many times over. */
#include "../tools/check.h"

enum { WAITERS = 300, ROUNDS = 20 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, all_here = PTHREAD_COND_INITIALIZER;
static int generation, arrived;

static void *wait_for_all(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int mine;

		lock(&m);
		mine = generation;
		if (++arrived == WAITERS)
			CHECK_EQ(pthread_cond_signal(&all_here), 0);
		while (generation == mine)
			CHECK_EQ(pthread_cond_wait(&go, &m), 0);
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[WAITERS];

	check_begin(argv[0], 30);
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(wait_for_all, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		while (arrived < WAITERS)
			CHECK_EQ(pthread_cond_wait(&all_here, &m), 0);
		arrived = 0;
		generation++;
		if (i & 1)
			CHECK_EQ(pthread_cond_broadcast(&go), 0);
		unlock(&m);
		if (!(i & 1))
			CHECK_EQ(pthread_cond_broadcast(&go), 0);
	}
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	return 0;
}
