/* SPDX-License-Identifier: MIT */
/*
 * A thread that goes away for a while, as the waiter of a condition variable, does not yield its
 * next lock to a thread that it has woken as it went, although its turn was over then.  One that
 * does not go away does (once at least: it needs not if it is late by itself).  Counted, not timed.
 */
#include "../tools/check.h"

#include <sys/resource.h>

#include "lock/lock.h"
#include "runtime/decide.h"

#define ROUNDS	     40
#define PAST_TURN_NS 6000000u /* TURN_NS is 5 ms (lock_paths.h) */

static struct fg_lock l;

static long sleeps(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &r), 0);
	return r.ru_nvcsw;
}

/* How often its next lock sleeps.  `others`: what those that sleep have set; none of them comes. */
static long next_lock_sleeps(uint32_t others, bool going_away)
{
	uint64_t since;
	long before;

	_fg_lock(&l);
	__atomic_fetch_or(&l.word, others, __ATOMIC_RELAXED);
	for (since = fg_now_ns(); fg_now_ns() - since < PAST_TURN_NS;)
		;
	if (going_away)
		_fg_lock_going_away(&l);
	_fg_unlock(&l);
	if (going_away)
		_fg_lock_gone_away();
	before = sleeps();
	_fg_lock(&l);
	before = sleeps() - before;
	__atomic_fetch_and(&l.word, FG_WORD_ID, __ATOMIC_RELAXED);
	_fg_unlock(&l);
	return before;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	static const uint32_t others[] = {FG_WORD_WAITERS, FG_WORD_WAITERS | FG_WORD_DESIGNATED};

	(void)argc;
	check_begin(argv[0], 60);
	fg_policy_set(FG_POLICY_DEFAULT);
	join(start(nothing, NULL)); /* no longer alone */
	_fg_lock(&l);
	_fg_unlock(&l);
	for (unsigned i = 0; i < 2; i++) {
		UNTIL(next_lock_sleeps(others[i], false));
		for (int round = 0; round < ROUNDS; round++)
			CHECK_EQ(next_lock_sleeps(others[i], true), 0);
	}
	return 0;
}
