/* SPDX-License-Identifier: MIT */
/*
 * When a thread gives way to another process (fg_give_way): if the owner that it waits for shares
 * its CPU as well, and has come to it later, or at the same time and with a lower id; soon after it
 * has come itself, and so often only.  It counts how often it has.
 */
#include "../tools/check.h"

#include "runtime/cpus.h"
#include "runtime/decide.h"
#include "runtime/policy.h"

#define MS (1000000 >> FG_SHARES_LOG2)

static struct fg_counters counters;
static uint32_t owner, end;

static void *be_owner(void *arg)
{
	STORE(owner, fg_self()->id);
	UNTIL(LOAD(end));
	return arg;
}

static uint32_t now(void)
{
	return (uint32_t)(fg_now_ns() >> FG_SHARES_LOG2) & ~FG_SHARES_TRIES;
}

struct at {
	enum fg_state state; /* the owner's */
	int32_t since;	     /* how much later than I */
	int32_t me;	     /* when I came */
	uint32_t tries;
};

/* True if it does, of some times that it is asked: this thread may lose its CPU at any of them. */
static bool gives_way(uint32_t waiter, struct at at)
{
	struct fg_self *t = fg_self(), self = *t;
	struct fg_slot *other = (struct fg_slot *)fg_slot_look(fg_id_index(owner)),
		       mine = {.state = FG_STATE_ON};

	self.id = waiter;
	self.slot = &mine;
	for (int i = 0; i < 100; i++) {
		uint32_t since = (now() + (uint32_t)at.me) & ~FG_SHARES_TRIES;

		mine.shares_since = since + at.tries;
		other->shares_since = since + (uint32_t)at.since;
		other->state = at.state;
		fg_give_way(&self, owner);
		if (mine.shares_since != since + at.tries) {
			CHECK_EQ(mine.shares_since, since + at.tries + 1);
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	const struct at same = {.state = FG_STATE_ON}, later = {FG_STATE_ON, MS, 0, 0},
			earlier = {FG_STATE_ON, -MS, 0, 0}, gone = {FG_STATE_RUNNABLE, MS, 0, 0},
			late = {FG_STATE_ON, MS, -3 * MS, 0}, third = {FG_STATE_ON, 0, 0, 2},
			last = {FG_STATE_ON, 0, 0, FG_SHARES_TRIES};
	uint32_t lower, higher;
	struct fg_slot *other;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	t = start(be_owner, NULL);
	UNTIL(LOAD(owner));
	lower = owner - 1;
	higher = owner + 1;
	other = (struct fg_slot *)fg_slot_look(fg_id_index(owner));

	CHECK(!gives_way(higher, same)); /* no monitor, so nobody knows */
	counters.heartbeat_ns = UINT64_MAX;
	fg_policy_monitor(&counters, 1);
	CHECK(gives_way(higher, same));
	CHECK(!gives_way(lower, same));
	CHECK(gives_way(lower, later));
	CHECK(!gives_way(higher, earlier));
	CHECK(!gives_way(higher, gone));
	CHECK(!gives_way(higher, late));
	CHECK(gives_way(higher, third));
	CHECK(!gives_way(higher, last));
	fg_policy_set(FG_POLICY_PAPER);
	CHECK(!gives_way(higher, same));
	other->shares_since = 0;
	STORE(end, 1);
	join(t);
	return 0;
}
