// SPDX-License-Identifier: MIT
/*
 * Case 4: a sleeping holder that is woken but gets no CPU moves from b to p.
 * The holder runs under SCHED_IDLE next to a busy thread, so being woken does
 * not get it the CPU at once.
 */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor holder, hog;
	struct monitor m;
	struct client c;
	struct fg_slot *slot;
	uint64_t until;
	bool seen = false;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpu, SCHED_IDLE);
	actor_start(&hog, NULL, 0, cpu, SCHED_OTHER);
	slot = actor_slot(&holder);
	actor_acquire(&holder);
	/* It went to sleep before it held the lock: one turn, so that it does so as a holder. */
	WAIT_FOR(slot->state == FG_STATE_SLEEP);
	actor_tell(&holder, ACT_YIELD);
	WAIT_FOR(slot->state != FG_STATE_SLEEP);
	actor_tell(&holder, ACT_SLEEP);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);

	actor_tell(&hog, ACT_BUSY);
	WAIT_FOR(hog.rounds > 1000);
	for (until = fg_now_ns() + DEADLINE_S * 1000000000ull; !seen && fg_now_ns() < until;) {
		uint64_t preempted;

		if (c.counters->dom[FG_DOMAIN_ALL].blocked != 1) {
			usleep(100);
			continue;
		}
		preempted = slot->preempted;
		actor_tell(&holder, ACT_SLEEP); /* a wake-up without any other reason */
		/* p, and it has not run since: the wake-up alone did it. */
		seen = c.counters->dom[FG_DOMAIN_ALL].preempted == 1 &&
		       c.counters->cpu[cpu].preempted == 1 && slot->state == FG_STATE_RUNNABLE &&
		       slot->preempted == preempted && c.counters->dom[FG_DOMAIN_ALL].blocked == 0;
		usleep(1000);
	}
	if (!seen)
		fail("a woken holder without a CPU was never seen as p");
	CHECK(all_sane(c.counters, 1));
	actor_join(&hog);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
