/* SPDX-License-Identifier: MIT */
/*
 * A signal handler that locks after a single instruction of a thread's first lock, each of them in
 * turn: the thread has a slot then, and one index.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include "lock/lock.h"
#include "runtime/thread.h"

#define STEPS_MOST 3000

static struct fg_lock of_thread, of_handler;
static long handler_at, steps;

static void lock_once(void)
{
	if (step_count != handler_at)
		return;
	_fg_lock(&of_handler);
	_fg_unlock(&of_handler);
}

static void *first_lock(void *arg)
{
	step_begin(lock_once);
	_fg_lock(&of_thread);
	step_end();
	steps = step_count;
	CHECK(fg_has_slot(&fg_self_tls));
	CHECK_EQ(of_thread.word, fg_self_tls.id);
	_fg_unlock(&of_thread);
	return arg;
}

int main(int argc, char **argv)
{
	uint32_t highest;

	(void)argc;
	check_begin(argv[0], 60);
	fg_self();
	join(start(first_lock, NULL));
	highest = fg_threads_highest();
	for (handler_at = 1; handler_at <= steps && handler_at < STEPS_MOST; handler_at++) {
		join(start(first_lock, NULL));
		CHECK_EQ(fg_threads_highest(), highest);
	}
	CHECK(handler_at > 100);
	return 0;
}
#endif
