/* SPDX-License-Identifier: MIT */
/*
 * A signal handler that takes and releases another lock, after every single
 * instruction of lock, unlock, trylock, timed locks and condition waits, free and
 * contended, the outer lock alone and nested.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER,
		       recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t h = PTHREAD_MUTEX_INITIALIZER, h2 = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int stop, section;
static long count, handled;

static void in_handler(void)
{
	if (step_count % 8 == 0) { /* nested in the handler as well */
		lock(&h2);
		CHECK_EQ(pthread_mutex_lock(&h2), EDEADLK);
	}
	lock(&h);
	*(volatile long *)&handled += 1;
	unlock(&h);
	if (step_count % 8 == 0) {
		unlock(&h2);
		CHECK_EQ(pthread_mutex_unlock(&h2), EPERM);
	}
}

static void enter(void)
{
	CHECK_EQ(section++, 0);
	count++;
	section--;
}

static void use(void)
{
	struct timespec ts;
	int r;

	for (int i = 0; i < 3; i++) {
		lock(&m);
		enter();
		unlock(&m);
		if (!pthread_mutex_trylock(&m)) {
			enter();
			unlock(&m);
		}
	}
	ts = in_us(CLOCK_REALTIME, 300);
	r = pthread_mutex_timedlock(&m, &ts);
	CHECK(r == 0 || r == ETIMEDOUT);
	if (!r)
		unlock(&m);
	lock(&recursive);
	lock(&outer);
	lock(&m);
	lock(&recursive);
	unlock(&outer); /* not in order */
	unlock(&recursive);
	ts = in_us(CLOCK_REALTIME, 100);
	r = pthread_cond_timedwait(&c, &m, &ts);
	CHECK(r == 0 || r == ETIMEDOUT);
	enter();
	CHECK_EQ(pthread_cond_signal(&c), 0);
	unlock(&m);
	unlock(&recursive);
}

/* Fights for all of them, so that the waits are waits. */
static void *contend(void *arg)
{
	while (!LOAD(stop)) {
		lock(&m);
		enter();
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		unlock(&m);
		lock(&h);
		*(volatile long *)&handled += 1;
		unlock(&h);
		sleep_us(1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[2];
	long steps;

	check_begin(argv[0], 30);
	for (int i = 0; i < 2; i++) {
		step_begin(in_handler);
		use();
		step_end();
	}
	steps = step_count;
	CHECK(steps > 100);
	for (int i = 0; i < 2; i++)
		t[i] = start(contend, NULL);
	for (int i = 0; i < 40; i++) {
		step_begin(in_handler);
		use();
		step_end();
	}
	STORE(stop, 1);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	CHECK_EQ(try_elsewhere(&m), 0);
	CHECK_EQ(try_elsewhere(&h), 0);
	CHECK_EQ(try_elsewhere(&h2), 0);
	CHECK_EQ(try_elsewhere(&recursive), 0);
	return 0;
}
#endif
