/* SPDX-License-Identifier: MIT */
/*
 * A thread that holds a mutex, for which another one sleeps, signals, and after one of the
 * instructions of that a second thread releases the mutex for it.  Whoever was signalled wakes up,
 * though the signal may have left that to the release.  And the release comes back while the first
 * one is in a signal handler there, but for a few instructions, though it waits for it elsewhere:
 * the handler may wait for what the other one has.
 */
#include "../tools/step.h"

#include <sched.h>

#ifdef STEP_SUPPORTED
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waits, back, item, request, released, ends;
static long when;
static unsigned kept_back; /* instructions after which the release waits for the handler's end */

/* A dozen; more on a busy machine, where it may not get a CPU for so long. */
#define KEPT_BACK 40
#define FOR_NS	  100000000

static void *wait_for_item(void *arg)
{
	for (int n = 1; !LOAD(ends); n++) {
		lock(&m);
		STORE(waits, n);
		while (item != n && !LOAD(ends))
			CHECK_EQ(pthread_cond_wait(&cond, &m), 0);
		unlock(&m);
		STORE(back, n);
	}
	return NULL;
}

/* For the thread that signals. */
static void *release(void *arg)
{
	for (int n = 1; !LOAD(ends); n++) {
		UNTIL(LOAD(request) == n || LOAD(ends));
		if (LOAD(ends))
			break;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
		STORE(released, n);
	}
	return NULL;
}

static void *time_out(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);

	CHECK_EQ(pthread_mutex_timedlock(&m, &ts), ETIMEDOUT);
	return NULL;
}

static int this_round;

static void after_each(void)
{
	long long end;

	if (step_count != when)
		return;
	end = clock_ns(CLOCK_MONOTONIC) + FOR_NS;
	STORE(request, this_round);
	while (LOAD(released) != this_round && clock_ns(CLOCK_MONOTONIC) < end)
		sched_yield();
	kept_back += LOAD(released) != this_round;
}

static void round_of(int n)
{
	this_round = n;
	UNTIL(LOAD(waits) == n);
	usleep(500); /* it sleeps, mostly */
	lock(&m);
	item = n;
	join(start(time_out, NULL));
	step_begin(after_each);
	pthread_cond_signal(&cond);
	step_end();
	STORE(request, n); /* the signal had fewer instructions this time */
	for (int ms = 0; LOAD(back) != n; ms++) {
		CHECK(ms < 2000); /* nobody has woken it */
		usleep(1000);
	}
	UNTIL(LOAD(released) == n);
}

int main(int argc, char **argv)
{
	pthread_t waiter, releaser;
	int n = 1;

	check_begin(argv[0], 100);
	waiter = start(wait_for_item, NULL);
	releaser = start(release, NULL);
	when = 0;
	round_of(n); /* what is done once */
	for (when = 1; when <= 3 || when <= step_count; when++)
		round_of(++n);
	STORE(ends, 1);
	lock(&m);
	pthread_cond_signal(&cond);
	unlock(&m);
	join(waiter);
	join(releaser);
	printf("%d rounds, the release kept back after %u instructions\n", n, kept_back);
	CHECK(kept_back <= KEPT_BACK);
	return 0;
}
#endif
