// SPDX-License-Identifier: MIT
/* Case 3: a holder that sleeps is b and never p; its slot says SLEEP, then ON. */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor a;
	struct monitor m;
	struct client c;
	struct fg_slot *slot;
	uint64_t blocked;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	actor_start(&a, &c, 3, -1, SCHED_OTHER);
	slot = actor_slot(&a);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1 &&
		 c.counters->dom[c.welcome.domain].blocked == 1);
	/* a moment after the count */
	WAIT_FOR(slot->state == FG_STATE_SLEEP && slot->blocked == 1);
	CHECK(c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
	CHECK(ever_blocked(c.counters) == 1);

	actor_tell(&a, ACT_BUSY);
	WAIT_FOR(slot->state == FG_STATE_ON);
	WAIT_FOR(all_zero(c.counters));

	/* Asleep without the lock: state says so, nothing is counted. */
	actor_release(&a);
	blocked = slot->blocked;
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(slot->state == FG_STATE_SLEEP);
	CHECK(slot->blocked == blocked && all_zero(c.counters));
	actor_join(&a);
	monitor_stop(&m);
	return 0;
}
