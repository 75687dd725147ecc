/* SPDX-License-Identifier: MIT */
/*
 * A signal handler that locks after a single instruction of a thread's first lock, each of them in
 * turn: the thread has a slot then, and one index.  One that forks instead: in the child nobody
 * else is given its index.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include "lock/lock.h"
#include "runtime/thread.h"

#define STEPS_MOST 3000

static struct fg_lock of_thread, of_handler;
static long handler_at, steps;
static bool forks, is_child;
static pid_t child;

static void lock_once(void)
{
	if (step_count != handler_at)
		return;
	if (forks) {
		child = check_fork();
		step_ending = is_child = !child;
		return;
	}
	_fg_lock(&of_handler);
	_fg_unlock(&of_handler);
}

/* And so do as many at once as would have all indices between them. */
static void *has_another_index(void *arg)
{
	static uint32_t threads;

	CHECK(fg_has_slot(fg_self()));
	CHECK(fg_id_index(fg_self()->id) != *(const uint32_t *)arg);
	if (++threads <= fg_threads_highest() && threads < 8)
		join(start(has_another_index, arg));
	return NULL;
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
	if (is_child) {
		uint32_t mine = fg_id_index(fg_self_tls.id);

		join(start(has_another_index, &mine));
		_exit(0);
	}
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
	forks = true;
	for (handler_at = 1; handler_at <= steps && handler_at < STEPS_MOST; handler_at += 8) {
		child = 0;
		join(start(first_lock, NULL));
		if (child)
			check_child(child);
	}
	return 0;
}
#endif
