/* SPDX-License-Identifier: MIT */
/*
 * As many signals as there are waiters release all of them, timed and untimed, without another
 * signal.
 */
#include "../tools/check.h"

enum { WAITERS = 16, ROUNDS = 60 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, released;

static void *wait_once(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 60000000);
	int seen;

	lock(&m);
	seen = released;
	waiting++;
	while (released == seen) {
		int r = (intptr_t)arg & 1 ? pthread_cond_timedwait(&c, &m, &ts) :
					    pthread_cond_wait(&c, &m);

		CHECK_EQ(r, 0);
	}
	waiting--;
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t t[WAITERS];

		for (int i = 0; i < WAITERS; i++)
			t[i] = start(wait_once, (void *)(intptr_t)i);
		for (;;) {
			lock(&m);
			if (waiting == WAITERS)
				break;
			unlock(&m);
			sleep_us(20);
		}
		released++; /* under the lock: everybody waits and everybody may go */
		for (int i = 0; i < WAITERS; i++)
			CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		for (int i = 0; i < WAITERS; i++)
			join(t[i]);
		CHECK_EQ(waiting, 0);
	}
	return 0;
}
