/* SPDX-License-Identifier: MIT */
#include "lock/once.h"

#include "runtime/count.h"
#include "runtime/decide.h"
#include "sys/cleanup.h"

#define RUNNING 1u

/* In bits 2 to 31.  A thread of the parent that was at it does not exist in the child of a fork. */
static uint32_t running(void)
{
	return fg_load_relaxed(&fg_epoch) << 2 | RUNNING;
}

/* Release: a thread that finds it done sees what the routine did. */
static void set(uint32_t *once, uint32_t value)
{
	fg_store_release(once, value);
	fg_futex_wake(once, INT32_MAX, FG_FUTEX_ANY);
}

/* The routine was cancelled, or has thrown, or was left by longjmp(). */
static void undone(void *once)
{
	set(once, 0);
}

struct wait {
	uint32_t *once;
	uint32_t value;
	struct wait *outer; /* which a signal handler has interrupted */
};

/* The innermost wait of this thread. */
static __thread struct wait *waiting __attribute__((tls_model("initial-exec")));

/*
 * A signal handler has forked, and this is the child: whoever was at the routine is not here.  The
 * waiter finds out before it is `waiting`; later it sees the word change, asleep as well.
 */
void _fg_once_after_fork(void)
{
	for (struct wait *w = waiting; w; w = w->outer) {
		uint32_t value = w->value;

		fg_cas_relaxed(w->once, &value, 0);
	}
}

static void left(void *wait)
{
	waiting = ((struct wait *)wait)->outer;
}

static void sleep_on(uint32_t *once, uint32_t value)
{
	static fg_spin_history history;
	struct fg_wait w = fg_wait_for_event(fg_self(), &history);
	bool in_time = fg_spin_while(&w, once, ~0u, value, NULL);

	fg_event_over(&w, in_time);
	if (in_time)
		return;
	fg_count(w.self, FG_STAT_PARKS, 1);
	fg_futex_wait(once, value, FG_FUTEX_ANY, NULL);
}

static void wait_for(uint32_t *once, uint32_t value)
{
	struct wait w = {once, value, waiting};

	fg_cleanup_push(left, &w);
	fg_store_relaxed(&waiting, &w);
	fg_fence_local();
	if (value == running())
		sleep_on(once, value);
	fg_cleanup_pop(1);
}

void _fg_once_slow(uint32_t *once, void (*routine)(void))
{
	uint32_t have = fg_load_acquire(once);

	while (have != FG_ONCE_DONE) {
		if (have == running()) {
			wait_for(once, have);
			have = fg_load_acquire(once);
		} else if (fg_cas_acq_rel(once, &have, running())) {
			fg_cleanup_push(undone, once);
			routine();
			fg_cleanup_pop(0);
			set(once, FG_ONCE_DONE);
			return;
		}
	}
}
