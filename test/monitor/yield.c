// SPDX-License-Identifier: MIT
/* Case 13: a holder that yields the CPU to another thread is p, not b. */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor holder, other;
	struct monitor m;
	struct client c;
	struct fg_slot *slot;
	uint64_t blocked;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpu, SCHED_OTHER);
	actor_start(&other, NULL, 0, cpu, SCHED_OTHER);
	slot = actor_slot(&holder);
	actor_tell(&other, ACT_YIELD);
	actor_tell(&holder, ACT_YIELD);
	WAIT_FOR(holder.rounds > 10);
	actor_acquire(&holder);
	blocked = slot->blocked;
	WAIT_FOR(slot->preempted >= 100);
	CHECK(slot->blocked == blocked);
	actor_release(&holder);
	actor_join(&other);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
