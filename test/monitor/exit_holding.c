// SPDX-License-Identifier: MIT
/* Case 7: a thread that exits while it holds is not counted, and its slot says DEAD. */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor a;
	struct monitor m;
	struct client c;
	int i;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 32);
	for (i = 1; i <= 30; i++) {
		actor_start(&a, &c, i, -1, SCHED_OTHER);
		WAIT_FOR(c.slots[i].state == FG_STATE_SLEEP);
		actor_acquire(&a);
		actor_tell(&a, ACT_YIELD);
		WAIT_FOR(a.rounds > 3);
		actor_join(&a);
		WAIT_FOR(c.slots[i].state == FG_STATE_DEAD);
		WAIT_FOR(all_zero(c.counters));
	}
	monitor_stop(&m);
	return 0;
}
