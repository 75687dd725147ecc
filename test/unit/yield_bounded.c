/* SPDX-License-Identifier: MIT */
/*
 * A thread whose turn is over yields to one that it has woken and that cannot run, as beside a
 * real-time thread, once for a bounded time: not again at the ends of its later turns, since nobody
 * sleeps until that one has been.  Counted, not timed.
 */
#include "../tools/check.h"

#include <sched.h>
#include <sys/resource.h>

#include "lock/lock.h"
#include "runtime/decide.h"

#define ROUNDS	     5
#define TURNS	     10
#define PAST_TURN_NS 6000000u /* TURN_NS is 5 ms (lock_paths.h) */
#define SLEEPS	     3	      /* YIELD_SLEEPS, lock.c */

static struct fg_lock l;

static long sleeps(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &r), 0);
	return r.ru_nvcsw;
}

static void turn(void)
{
	uint64_t since;

	for (since = fg_now_ns(); fg_now_ns() - since < PAST_TURN_NS;) {
		_fg_unlock(&l);
		_fg_lock(&l);
	}
}

/* Sleeps of a thread with a turn that is over, and of its turns after that. */
static long sleeps_for_one(void)
{
	long before;
	int i;

	_fg_lock(&l);
	turn();
	__atomic_fetch_or(&l.word, FG_WORD_WAITERS, __ATOMIC_RELAXED);
	before = sleeps();
	for (i = 0; i < TURNS; i++)
		turn();
	_fg_unlock(&l);
	return sleeps() - before;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	struct sched_param p = {.sched_priority = 1};
	int i;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	join(start(nothing, NULL)); /* no longer alone */
	while (!sleeps_for_one())
		; /* it does yield, unless it is late by itself */
	/* Where it may be: the thread that must not wait long. */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
	for (i = 0; i < ROUNDS; i++)
		CHECK(sleeps_for_one() <= SLEEPS);
	return 0;
}
