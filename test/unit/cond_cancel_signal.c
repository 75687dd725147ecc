/* SPDX-License-Identifier: MIT */
/* A cancelled waiter does not take a signal away from another one. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, tokens;

static void cleanup(void *arg)
{
	waiting--;
	unlock(&m);
}

static void *wait_for_token(void *arg)
{
	lock(&m);
	pthread_cleanup_push(cleanup, NULL);
	waiting++;
	while (!tokens)
		pthread_cond_wait(&c, &m);
	tokens--;
	pthread_cleanup_pop(1);
	return NULL;
}

int main(int argc, char **argv)
{
	int cancelled = 0;
	uint64_t rng;

	check_begin(argv[0], 20);
	rng = rnd_seed(0);
	for (int i = 0; i < 500; i++) {
		pthread_t a = start(wait_for_token, NULL), b = start(wait_for_token, NULL);
		void *r;

		for (int both = 0; !both;) {
			lock(&m);
			both = waiting == 2;
			unlock(&m);
		}
		/*
		 * One token, one signal, one cancellation, all at once: b has to get the token
		 * unless a did.
		 */
		lock(&m);
		tokens = 1;
		if (rnd(&rng) & 1)
			CHECK_EQ(pthread_cancel(a), 0);
		CHECK_EQ(pthread_cond_signal(&c), 0);
		pthread_cancel(a);
		unlock(&m);
		r = join(a);
		cancelled += r == PTHREAD_CANCELED;
		if (r != PTHREAD_CANCELED) { /* a has it: b needs another */
			lock(&m);
			tokens = 1;
			CHECK_EQ(pthread_cond_signal(&c), 0);
			unlock(&m);
		}
		join(b);
		CHECK_EQ(tokens, 0);
		CHECK_EQ(waiting, 0);
	}
	if (!cancelled)
		check_skip("no cancellation was in time");
	return 0;
}
