/* SPDX-License-Identifier: MIT */
/*
 * Time-slice extension: an owner asks for it if others wait, once for all locks that it has, until
 * it has released the last of them, in any order; it leaves a request of the program's own alone.
 * The library's objects are part of this program, which is the kernel: it takes requests back.
 */
#include "../tools/check.h"

#include <sys/rseq.h>

#include "lock/lock.h"
#include "runtime/count.h"
#include "runtime/policy.h"
#include "runtime/slice.h"
#include "sys/slice.h"

static struct fg_lock a, b;
static struct fg_stats stats;
static volatile struct fg_slice_ctrl *ctrl;

/* Somebody sleeps, and somebody else checks the lock. */
static void take_waited_for(struct fg_lock *l)
{
	STORE(l->word, FG_WORD_LEAVES_ASLEEP);
	_fg_lock(l);
}

/* It may leave those bits. */
static void give_up(struct fg_lock *l)
{
	_fg_unlock(l);
	CHECK(!(LOAD(l->word) & FG_WORD_ID));
	STORE(l->word, 0);
}

static unsigned long extended(void)
{
	unsigned long n = 0;

	for (int i = 0; i < FG_STATS_SHARDS; i++)
		n += stats.shard[i].v[FG_STAT_EXTENSIONS];
	return n;
}

static void rounds(void)
{
	_fg_lock(&a); /* nobody waits */
	CHECK_EQ(ctrl->all, 0);
	_fg_unlock(&a);

	take_waited_for(&a);
	CHECK_EQ(ctrl->request, 1);
	give_up(&a);
	CHECK_EQ(ctrl->all, 0);

	take_waited_for(&a); /* and a second one, released last */
	_fg_lock(&b);
	give_up(&a);
	CHECK_EQ(ctrl->request, 1);
	_fg_unlock(&b);
	CHECK_EQ(ctrl->all, 0);

	_fg_lock(&b); /* and the other way round */
	take_waited_for(&a);
	CHECK_EQ(ctrl->request, 1);
	give_up(&a);
	CHECK_EQ(ctrl->request, 1);
	_fg_unlock(&b);
	CHECK_EQ(ctrl->all, 0);
	CHECK_EQ(extended(), 0);

	take_waited_for(&a);
	ctrl->request = 0; /* granted, and over: not again before the end */
	take_waited_for(&b);
	CHECK_EQ(ctrl->all, 0);
	give_up(&b);
	give_up(&a);
	CHECK_EQ(extended(), 1);
	take_waited_for(&a);
	CHECK_EQ(ctrl->request, 1);
	ctrl->request = 0;
	ctrl->granted = 1;
	give_up(&a);
	CHECK_EQ(extended(), 2);
	ctrl->granted = 0;

	ctrl->request = 1; /* by the program, for a section of its own */
	take_waited_for(&a);
	give_up(&a);
	CHECK_EQ(ctrl->request, 1);
	ctrl->request = 0;
	stats = (struct fg_stats){0};
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	struct fg_self *t;

	(void)argc;
	check_begin(argv[0], 60);
	if (__rseq_size == 0)
		check_skip("glibc has not registered rseq");
	fg_policy_set(FG_POLICY_BLOCK);
	join(start(nothing, NULL)); /* no longer alone */
	fg_stats = &stats;
	t = fg_self();
	ctrl = fg_slice_ctrl(t->cpu);
	fg_slices = FG_SLICES_OFFERED;
	fg_thread_mine(t)->slice = FG_SLICE_QUIET;
	for (int i = 0; i < 100; i++)
		rounds();
	fg_slices = FG_SLICES_NONE;
	take_waited_for(&a);
	CHECK_EQ(ctrl->all, 0);
	give_up(&a);
	return 0;
}
