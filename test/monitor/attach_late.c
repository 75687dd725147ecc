// SPDX-License-Identifier: MIT
/*
 * Case 17: holders that were off CPU when the monitor came are not counted, and
 * their return does not make a count negative.  From their next switch-out on,
 * they are: threads born before the registration are found like those after it.
 */
#include <sched.h>
#include "harness.h"

static struct client c;

int main(void)
{
	enum { THREADS = 10 };
	static struct fg_slot before[THREADS + 1];
	struct actor a[THREADS + 1];
	struct monitor m;
	int i;

	test_begin();
	monitor_start(&m, NULL);
	c.slots = before; /* so that they can name their slots before there are any */
	for (i = 1; i <= THREADS; i++)
		actor_start(&a[i], &c, i, -1, SCHED_OTHER);
	usleep(20000);
	client_join(&c, m.name, THREADS + 1);
	for (i = 1; i <= THREADS; i++) {
		c.slots[i].owner_id = i;
		actor_acquire(&a[i]);
	}
	usleep(1000);
	CHECK(ever_blocked(c.counters) == 0 && all_zero(c.counters));
	for (i = 1; i <= THREADS; i++) {
		actor_tell(&a[i], ACT_YIELD);
		WAIT_FOR(a[i].rounds > 3);
		CHECK(all_sane(c.counters, THREADS));
	}
	for (i = 1; i <= THREADS; i++)
		actor_tell(&a[i], ACT_SLEEP);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == THREADS);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
	for (i = 1; i <= THREADS; i++)
		CHECK(c.slots[i].bound == (uint32_t)a[i].tid);
	for (i = 1; i <= THREADS; i++)
		actor_join(&a[i]);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
