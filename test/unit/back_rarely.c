/* SPDX-License-Identifier: MIT */
/*
 * A thread that has slept for a lock, and is not back for it at once, does not keep it busy though
 * it has just woken up: its release wakes the next sleeper, and does not leave that one to the
 * designated waiter, which looks after some ms.  Also if it has released this lock before.
 */
#include "../tools/check.h"

#include "lock/lock_paths.h"
#include "runtime/decide.h"

static struct fg_lock l;

static void *sleep_for_it(void *arg)
{
	struct fg_self *t = fg_self();

	/* Others slept at its latest release of it, a second ago. */
	fg_thread_mine(t)->kept_busy = (uint32_t)(uintptr_t)&l;
	t->released_us = turn_clock(fg_now_ns()) - 1000000;
	_fg_lock(&l);
	/* Also where it has come before it slept, and others would. */
	fg_or_relaxed(&l.word, FG_WORD_LEAVES_ASLEEP);
	_fg_unlock(&l);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	fg_policy_set(FG_POLICY_BLOCK);
	for (uint32_t i = 0; i < 50; i++) {
		CHECK_EQ(l.word, 0);
		_fg_lock(&l);
		t = start(sleep_for_it, NULL);
		UNTIL(LOAD(l.word) & FG_WORD_WAITERS);
		/* As if there were another sleeper, the designated waiter. */
		fg_or_relaxed(&l.word, FG_WORD_DESIGNATED);
		_fg_unlock(&l);
		join(t);
		CHECK_EQ(LOAD(l.wakes), 2 * i + 2);
		CHECK_EQ(l.word, FG_WORD_DESIGNATED);
		l.word = 0;
	}
	return 0;
}
