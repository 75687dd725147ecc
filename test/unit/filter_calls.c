/* SPDX-License-Identifier: MIT */
/*
 * Calls that threads have begun when a filter comes: each filter waits for them, the second one as
 * well, while the first still waits.  One that never ends, since its thread has left it by longjmp,
 * is waited for once.  And a fork inside such a call leaves a child in which a filter finds none,
 * also after the call has ended there.
 */
#include "../tools/check.h"

#include "runtime/policy.h"
#include "sys/clock.h"
#include "sys/filter.h"

#define GIVES_UP_NS 1000000000u /* fg_filter_comes() waits so long, and no longer */
#define ANY	    5u		/* a counter of its own */

static int ended; /* the call */

struct filter {
	int back, early;
};
static uint64_t began; /* before the first one, which gives up for all */

/* Early: back before the call has ended, and before the time is over. */
static void *comes(void *arg)
{
	struct filter *f = arg;

	fg_filter_comes();
	f->early = !LOAD(ended) && fg_now_ns() - began < GIVES_UP_NS;
	STORE(f->back, 1);
	return NULL;
}

static void both_wait(void)
{
	struct filter first = {0}, second = {0};
	pthread_t t, u;

	CHECK(fg_call_begins(ANY));
	began = fg_now_ns();
	t = start(comes, &first);
	UNTIL(__atomic_load_n(&fg_filters, __ATOMIC_RELAXED) == 1);
	u = start(comes, &second);
	/* It is given the time to come back too early. */
	for (int i = 0; i < 2000 && !LOAD(second.back); i++)
		sleep_us(100);
	STORE(ended, 1);
	fg_call_ends(ANY);
	join(t);
	join(u);
	CHECK_EQ(first.early, 0);
	CHECK_EQ(second.early, 0);
	CHECK_EQ(fg_call_begins(ANY), 0);
	fg_filter_failed();
	CHECK_EQ(fg_call_begins(ANY), 0);
	fg_filter_failed();
	CHECK(fg_call_begins(ANY));
	fg_call_ends(ANY);
}

static int in_child;

/* Between the two halves of a call of this thread. */
static void fork_here(int sig)
{
	pid_t pid = fork();

	(void)sig;
	CHECK(pid >= 0);
	if (!pid)
		in_child = 1;
	else
		check_child(pid);
}

/* One that waits for calls that there are not waits for the whole time, each time. */
static void finds_none(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 4 && least >= GIVES_UP_NS; i++) {
		uint64_t since = fg_now_ns(), took;

		fg_filter_comes();
		took = fg_now_ns() - since;
		fg_filter_failed();
		least = took < least ? took : least;
	}
	CHECK(least < GIVES_UP_NS);
}

static void left(void)
{
	CHECK(fg_call_begins(ANY));
	fg_filter_comes();
	fg_filter_failed();
	finds_none();
}

static void forked_inside(void)
{
	signal(SIGUSR1, fork_here);
	CHECK(fg_call_begins(ANY));
	CHECK_EQ(raise(SIGUSR1), 0);
	fg_call_ends(ANY);
	finds_none();
	if (in_child)
		_exit(0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	fg_filter_setup(fg_policy_clock_changed);
	if (fg_is_filtered())
		check_skip("the process was started behind a filter");
	both_wait();
	left();
	forked_inside();
	return 0;
}
