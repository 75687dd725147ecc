/* SPDX-License-Identifier: MIT */
/* Waits for events are bets: one is made and ends, is made no more when it fails, and again after a while. */
#include "../tools/check.h"

#include "runtime/decide.h"

static struct fg_counters counters;

/* Questions until the answer is to sleep, within a bound that no clock has to keep. */
static unsigned awake(fg_bet *bet)
{
	struct fg_wait w = fg_wait_for_event(fg_self(), bet);
	unsigned n = 0;

	counters.heartbeat_ns = fg_now_ns();
	while (fg_decide(&w) == FG_SPIN && n < 100000000)
		n++;
	CHECK(n < 100000000);
	fg_event_over(&w, false);
	return n;
}

static void bets_are_made(enum fg_policy policy, const struct fg_counters *monitor)
{
	struct timespec nap = { .tv_nsec = 20000000 };
	fg_bet bet = 0;
	unsigned n = 0, i;

	fg_policy_set(policy);
	fg_policy_monitor(monitor, 1);
	/* Not on a machine where a yield took long just now: try again a little later. */
	for (i = 0; !n && i < 200; i++) {
		bet = 0;
		n = awake(&bet);
		if (!n)
			nanosleep(&nap, NULL);
	}
	CHECK(n > 0);
	CHECK(bet > 0);

	bet = FG_BET_STOP;
	CHECK_EQ(awake(&bet), 0);
	CHECK_EQ(bet, FG_BET_STOP - 1);
}

int main(int argc, char **argv)
{
	fg_bet bet = 0;
	int i;

	for (i = 0; bet < FG_BET_STOP; i++)
		bet = fg_bet_after(bet, true, false);
	CHECK_EQ(i, 4);
	bet = fg_bet_after(0xff, true, false);
	CHECK_EQ(bet, 0xff);
	CHECK(fg_bet_after(bet, true, true) < FG_BET_STOP);

	if (fg_cpus() < 2) {
		puts("one CPU: nobody waits awake for an event");
		return 77;
	}
	bets_are_made(FG_POLICY_DEFAULT, NULL);
	bets_are_made(FG_POLICY_DEFAULT, &counters);
	bets_are_made(FG_POLICY_PAPER, &counters);
	bets_are_made(FG_POLICY_SPIN_THEN_PARK, NULL);
	fg_policy_set(FG_POLICY_BLOCK);
	bet = 0;
	CHECK_EQ(awake(&bet), 0);
	return 0;
}
