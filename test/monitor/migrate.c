// SPDX-License-Identifier: MIT
/*
 * Case 15: the per-CPU count follows a counted holder to its new CPU.  The
 * holder runs under SCHED_IDLE next to a busy thread on each CPU, so it hardly
 * ever runs while it is sent to and fro.
 */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor holder, hog[2];
	struct monitor m;
	struct client c;
	int cpus[2], i;

	test_begin();
	monitor_start(&m, NULL);
	if (usable_cpus(cpus, 2) < 2)
		skip("there is only one CPU to run on");
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpus[0], SCHED_IDLE);
	actor_tell(&holder, ACT_BUSY);
	actor_acquire(&holder);
	for (i = 0; i < 2; i++) {
		actor_start(&hog[i], NULL, 0, cpus[i], SCHED_OTHER);
		actor_tell(&hog[i], ACT_BUSY);
	}
	for (i = 0; i < 20; i++) {
		int here = cpus[i & 1], there = cpus[!(i & 1)];

		pin(holder.tid, here);
		WAIT_FOR(c.counters->cpu[here].preempted == 1 &&
			 c.counters->cpu[there].preempted == 0);
		CHECK(actor_slot(&holder)->cpu == (uint32_t)here);
		CHECK(all_sane(c.counters, 1));
	}
	actor_release(&holder);
	for (i = 0; i < 2; i++)
		actor_join(&hog[i]);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
