/* SPDX-License-Identifier: MIT */
/*
 * Who sleeps for a spinlock may be counted in another way of its bucket than those that were there
 * before, where another lock had a way then.  A release that finds nobody asleep in one, since the
 * one that is counted there has been woken and has yet to run, looks in the others.
 */
#include "../tools/check.h"

#include "lock/gate.h"
#include "lock/spin.h"
#include "runtime/policy.h"

enum { ONE_SLEEPER = 1, WAYS = FG_SPIN_WAYS };
static int32_t lock_ = FG_SPIN_FREE;

static void *wait_for_it(void *arg)
{
	_fg_spin_lock(&lock_, NULL);
	_fg_spin_unlock(&lock_);
	return arg;
}

/* What the lock's ways have in their upper half. */
static uint64_t key(void)
{
	const struct fg_spin_way *way = &_fg_spin_bucket(&lock_)->way[0];
	uint64_t who;
	pthread_t t;

	/* Another lock's: who waits does so by the lock itself. */
	_fg_gate(&lock_)->tag = ~_fg_gate_tag(&lock_);
	_fg_lock(_fg_gate(&lock_));
	_fg_spin_lock(&lock_, NULL);
	t = start(wait_for_it, NULL);
	UNTIL((who = LOAD(way->who)) & 0xffff);
	_fg_spin_unlock(&lock_);
	join(t);
	_fg_unlock(_fg_gate(&lock_));
	return who >> 32 << 32;
}

int main(int argc, char **argv)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(&lock_);
	uint32_t before[WAYS];
	uint64_t mine;

	(void)argc;
	check_begin(argv[0], 30);
	fg_policy_set(FG_POLICY_BLOCK);
	mine = key();
	_fg_spin_lock(&lock_, NULL);
	b->sleepers += WAYS - 1;
	b->way[0].who = b->way[1].who = mine | ONE_SLEEPER;
	b->way[WAYS - 1].who = ONE_SLEEPER;
	for (int i = 0; i < WAYS; i++)
		before[i] = b->way[i].wakes;
	_fg_spin_unlock(&lock_);
	for (int i = 0; i < WAYS; i++) {
		/* What is another lock's, or nobody's, is left alone. */
		CHECK_EQ(b->way[i].wakes - before[i], i != 2);
	}
	return 0;
}
