// SPDX-License-Identifier: MIT
/* Case 2: a holder that is preempted in the middle of a long system call is p, not b. */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor holder, hog;
	struct monitor m;
	struct client c;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpu, SCHED_OTHER);
	actor_start(&hog, NULL, 0, cpu, SCHED_OTHER);
	actor_tell(&holder, ACT_SYSCALL);
	actor_acquire(&holder);
	actor_tell(&hog, ACT_BUSY);
	WAIT_FOR(actor_slot(&holder)->preempted >= 5);
	CHECK(all_sane(c.counters, 1));
	actor_release(&holder);
	actor_join(&hog);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
