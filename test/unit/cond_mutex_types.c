/* SPDX-License-Identifier: MIT */
/*
 * Condition waits release and re-take mutexes of every type; EPERM for an error-checking one that
 * is not held.
 */
#include "../tools/check.h"

static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *wait_for_go(void *arg)
{
	lock(&m);
	waiting = 1;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	unlock(&m);
	return NULL;
}

/* Without the mutex; with it the wait goes on as ever. */
static void is_refused(pthread_cond_t *cond)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);

	CHECK_EQ(pthread_cond_wait(cond, &m), EPERM);
	CHECK_EQ(pthread_cond_timedwait(cond, &m, &ts), EPERM);
	lock(&m);
	ts = in_us(CLOCK_REALTIME, 10);
	CHECK_EQ(pthread_cond_timedwait(cond, &m, &ts), ETIMEDOUT);
	unlock(&m);
}

int main(int argc, char **argv)
{
	static pthread_cond_t shared;
	pthread_condattr_t attr;
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	int rounds;

	check_begin(argv[0], 20);
	rounds = check_rounds(200);
	CHECK_EQ(pthread_condattr_init(&attr), 0);
	CHECK_EQ(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&shared, &attr), 0);
	for (int i = 0; i < rounds; i++) {
		pthread_t t;
		int type = types[i % 4];
		struct timespec ts;

		mutex_of_type(&m, type);
		if (type == PTHREAD_MUTEX_ERRORCHECK) {
			is_refused(&c);
			is_refused(&shared);
		}
		waiting = go = 0;
		t = start(wait_for_go, NULL);
		for (int there = 0; !there;) {
			lock(&m);
			there = waiting;
			if (there) {
				go = 1;
				CHECK_EQ(pthread_cond_signal(&c), 0);
			}
			unlock(&m);
		}
		join(t);
		lock(&m);
		ts = in_us(CLOCK_REALTIME, 10);
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
		if (type == PTHREAD_MUTEX_ERRORCHECK)
			CHECK_EQ(pthread_mutex_lock(&m), EDEADLK); /* the owner is known again */
		unlock(&m);
		CHECK_EQ(try_elsewhere(&m), 0);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
