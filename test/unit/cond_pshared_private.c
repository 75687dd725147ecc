/* SPDX-License-Identifier: MIT */
/*
 * A process-shared condition variable with a private mutex, as programs have
 * that mark the one and forget the other: no token and no signal is lost,
 * whether signals are sent with the mutex or without it, and a cancelled or
 * timed out waiter has the mutex again.
 */
#include "../tools/check.h"

enum { TAKERS = 4, TOKENS = 4000 };
static pthread_mutex_t m;
static pthread_cond_t c;
static int tokens, taken, over, waiting;

static void *take(void *arg)
{
	int timed = (int)(intptr_t)arg;

	lock(&m);
	for (;;) {
		struct timespec ts = in_us(CLOCK_REALTIME, 60000000);

		while (!tokens && !over)
			CHECK_EQ(timed ? pthread_cond_timedwait(&c, &m, &ts) :
					 pthread_cond_wait(&c, &m),
				 0);
		if (!tokens)
			break;
		tokens--;
		taken++;
	}
	unlock(&m);
	return NULL;
}

static void cleanup(void *arg)
{
	(void)arg;
	waiting = 0;
	unlock(&m);
}

static void *wait_for_ever(void *arg)
{
	(void)arg;
	lock(&m);
	waiting = 1;
	pthread_cleanup_push(cleanup, NULL);
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_condattr_t a;

	check_begin(argv[0], 30);
	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&c, &a), 0);
	for (int type = 0; type < 4; type++) {
		struct timespec ts = in_us(CLOCK_REALTIME, 200);
		pthread_t t[TAKERS], victim;

		mutex_of_type(&m, types[type]);
		taken = over = 0;
		for (int i = 0; i < TAKERS; i++)
			t[i] = start(take, (void *)(intptr_t)(i & 1));
		for (int i = 0; i < TOKENS; i++) {
			lock(&m);
			tokens++;
			if (i & 1)
				CHECK_EQ(pthread_cond_signal(&c), 0);
			unlock(&m);
			if (!(i & 1))
				CHECK_EQ(pthread_cond_signal(&c), 0);
		}
		/* All are taken though nobody is signalled twice. */
		for (int all = 0; !all;) {
			lock(&m);
			all = taken == TOKENS;
			unlock(&m);
		}
		lock(&m);
		over = 1;
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		unlock(&m);
		for (int i = 0; i < TAKERS; i++)
			join(t[i]);

		victim = start(wait_for_ever, NULL);
		for (int there = 0; !there;) {
			lock(&m);
			there = waiting;
			unlock(&m);
		}
		CHECK_EQ(pthread_cancel(victim), 0);
		CHECK(join(victim) == PTHREAD_CANCELED);
		lock(&m);
		CHECK_EQ(waiting, 0);
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
		CHECK(is_past(CLOCK_REALTIME, ts));
		unlock(&m);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
