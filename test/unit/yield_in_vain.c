/* SPDX-License-Identifier: MIT */
/*
 * A thread whose turn is over yields to the one that it has woken, and only as long as that is on
 * its way: when it has had the lock and has gone, the next lock finds it free and does not sleep.
 * Counted, not timed.
 */
#include "../tools/check.h"

#include <sys/resource.h>

#include "lock/lock.h"
#include "runtime/decide.h"

#define ROUNDS	     40
#define PAST_TURN_NS 6000000u /* TURN_NS is 5 ms (lock_paths.h) */

static struct fg_lock l;
static uint32_t turns; /* the other has had the lock in so many rounds */

static long sleeps(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &r), 0);
	return r.ru_nvcsw;
}

/*
 * What a sleeper does, but for the sleep: WAITERS, the count of wake-ups, the lock with WAITERS,
 * its release.
 */
static void *waiter(void *arg)
{
	(void)arg;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t wakes;

		UNTIL(fg_load_relaxed(&l.word) & FG_WORD_ID);
		wakes = fg_load_acquire(&l.wakes);
		__atomic_fetch_or(&l.word, FG_WORD_WAITERS, __ATOMIC_RELAXED);
		while (fg_load_acquire(&l.wakes) == wakes)
			sched_yield();
		_fg_lock(&l);
		__atomic_fetch_or(&l.word, FG_WORD_WAITERS, __ATOMIC_RELAXED);
		_fg_unlock(&l);
		fg_store_release(&turns, round);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long before, slept = 0;
	uint64_t since;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	t = start(waiter, NULL);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		before = sleeps();
		_fg_lock(&l);
		slept += round > 1 ? sleeps() - before : 0; /* the first sets up the thread */
		UNTIL(fg_load_relaxed(&l.word) & FG_WORD_WAITERS);
		for (since = fg_now_ns(); fg_now_ns() - since < PAST_TURN_NS;)
			;
		_fg_unlock(&l);
		while (fg_load_acquire(&turns) < round)
			sched_yield();
	}
	join(t);
	CHECK_EQ(slept, 0);
	CHECK_EQ(l.word, 0);
	return 0;
}
