/* SPDX-License-Identifier: MIT */
/*
 * A library that wraps condition variables, before ours or behind it: a waiter is woken, and holds
 * the mutex.
 */
#include "../tools/check.h"

enum { THREADS = 4, ROUNDS = 500 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c;
static int turn, inside;

static void *take_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		CHECK_EQ(inside++, 0);
		while (turn != me) {
			inside--;
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
			CHECK_EQ(inside++, 0);
		}
		turn = (turn + 1) % THREADS;
		inside--;
		CHECK_EQ(i % 2 ? pthread_cond_broadcast(&c) :
				 (pthread_cond_signal(&c), pthread_cond_broadcast(&c)),
			 0);
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	struct timespec ts = in_us(CLOCK_REALTIME, 100);

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_cond_init(&c, NULL), 0);
	lock(&m);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
	CHECK_EQ(try_elsewhere(&m), EBUSY);
	unlock(&m);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(take_turns, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
