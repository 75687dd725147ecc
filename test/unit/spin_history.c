/* SPDX-License-Identifier: MIT */
/*
 * Spinning for events adapts: it is tried and ends, is tried no more when it is in vain, and again
 * after a while.
 */
#include "../tools/check.h"

#include "runtime/decide.h"

static struct fg_counters counters;

/* Questions until the answer is to sleep, within a bound that no clock has to keep. */
static unsigned spins(fg_spin_history *history)
{
	struct fg_wait w = fg_wait_for_event(fg_self(), history);
	unsigned n = 0;

	counters.heartbeat_ns = fg_now_ns();
	while (fg_decide(&w) == FG_SPIN && n < 100000000)
		n++;
	CHECK(n < 100000000);
	fg_event_over(&w, false);
	return n;
}

static void is_tried(enum fg_policy policy, const struct fg_counters *monitor)
{
	struct timespec a_little = {.tv_nsec = 20000000};
	fg_spin_history history = 0;
	unsigned n = 0, i;

	fg_policy_set(policy);
	fg_policy_monitor(monitor, 1);
	/* Not on a machine where a yield took long just now: try again a little later. */
	for (i = 0; !n && i < 200; i++) {
		history = 0;
		n = spins(&history);
		if (!n)
			nanosleep(&a_little, NULL);
	}
	CHECK(n > 0);
	CHECK(history > 0);

	history = FG_SPIN_HISTORY_STOP;
	CHECK_EQ(spins(&history), 0);
	CHECK_EQ(history, FG_SPIN_HISTORY_STOP - 1);
}

int main(int argc, char **argv)
{
	fg_spin_history history = 0;
	int i;

	for (i = 0; history < FG_SPIN_HISTORY_STOP; i++)
		history = fg_spin_history_after(history, true, false);
	CHECK_EQ(i, 4);
	history = fg_spin_history_after(0xff, true, false);
	CHECK_EQ(history, 0xff);
	CHECK(fg_spin_history_after(history, true, true) < FG_SPIN_HISTORY_STOP);

	if (fg_cpus_allotted() < 2) {
		puts("one CPU, or the time of one: nobody spins for an event");
		return 77;
	}
	is_tried(FG_POLICY_DEFAULT, NULL);
	is_tried(FG_POLICY_DEFAULT, &counters);
	is_tried(FG_POLICY_PAPER, &counters);
	is_tried(FG_POLICY_SPIN_THEN_PARK, NULL);
	fg_policy_set(FG_POLICY_BLOCK);
	history = 0;
	CHECK_EQ(spins(&history), 0);
	return 0;
}
