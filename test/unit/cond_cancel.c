/* SPDX-License-Identifier: MIT */
/* Cancellation ends a wait, timed or not; the cleanup handler runs with the mutex held. */
#include "../tools/check.h"

static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned, type;

static void cleanup(void *arg)
{
	int r = pthread_mutex_trylock(&m);

	/* ours: a recursive one can be taken again, another one cannot */
	if (type == PTHREAD_MUTEX_RECURSIVE) {
		CHECK_EQ(r, 0);
		unlock(&m);
	} else {
		CHECK_EQ(r, EBUSY);
	}
	cleaned++;
	unlock(&m);
}

static void *wait_for_ever(void *how)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000000000),
			mono = in_us(CLOCK_MONOTONIC, 1000000000);

	lock(&m);
	pthread_cleanup_push(cleanup, NULL);
	waiting = 1;
	for (;;) {
		if ((intptr_t)how == 0)
			pthread_cond_wait(&c, &m);
		else if ((intptr_t)how == 1)
			pthread_cond_timedwait(&c, &m, &ts);
		else
			pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &mono);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};

	check_begin(argv[0], 20);
	for (int i = 0; i < 60; i++) {
		pthread_t t;

		type = types[i % 4];
		mutex_of_type(&m, type);
		waiting = cleaned = 0;
		t = start(wait_for_ever, (void *)(intptr_t)(i % 3));
		UNTIL(LOAD(waiting));
		if (i & 8)
			sleep_us(1000);
		lock(&m); /* held while the cancellation comes: the waiter has to wait for it */
		CHECK_EQ(pthread_cancel(t), 0);
		sleep_us(200);
		CHECK_EQ(cleaned, 0);
		unlock(&m);
		CHECK(join(t) == PTHREAD_CANCELED);
		CHECK_EQ(cleaned, 1);
		CHECK_EQ(try_elsewhere(&m), 0);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
