/* SPDX-License-Identifier: MIT */
/* wait and signal, one and many, with the mutex held on every return. */
#include "../tools/check.h"

enum { WAITERS = 8, ROUNDS = 300 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int tokens, taken, inside, waiting;

static void *wait_for_tokens(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		waiting++;
		while (!tokens) {
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
			CHECK_EQ(inside++, 0);
			inside--;
		}
		waiting--;
		tokens--;
		taken++;
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[WAITERS];

	check_begin(argv[0], 20);
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(wait_for_tokens, NULL);
	for (int i = 0; i < WAITERS * ROUNDS; i++) { /* one signal a token: none may be lost */
		lock(&m);
		tokens++;
		if (i & 1)
			CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		if (!(i & 1))
			CHECK_EQ(pthread_cond_signal(&c), 0);
	}
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	CHECK_EQ(taken, WAITERS * ROUNDS);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
