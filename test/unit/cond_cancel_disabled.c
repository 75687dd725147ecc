/* SPDX-License-Identifier: MIT */
/*
 * Cancellation disabled: the wait goes on; a request that is pending when a wait begins ends it at
 * once.
 */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, go, woken, cleaned;

static void cleanup(void *arg)
{
	cleaned = 1;
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	unlock(&m);
}

static void *work(void *arg)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	lock(&m);
	waiting = 1;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	woken = 1;
	unlock(&m);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	lock(&m); /* no cancellation point */
	pthread_cleanup_push(cleanup, NULL);
	for (;;) /* nobody signals: only the pending request ends it */
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (int i = 0; i < 50; i++) {
		pthread_t t;

		waiting = go = woken = cleaned = 0;
		t = start(work, NULL);
		UNTIL(LOAD(waiting));
		CHECK_EQ(pthread_cancel(t), 0);
		sleep_us(500);
		lock(&m);
		CHECK_EQ(woken, 0);
		go = 1;
		CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(woken, 1);
		CHECK_EQ(cleaned, 1);
		CHECK_EQ(try_elsewhere(&m), 0);
	}
	return 0;
}
