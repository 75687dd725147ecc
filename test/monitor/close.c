// SPDX-License-Identifier: MIT
/*
 * Case 16: the monitor leaves while a holder is counted.  An orderly end resets
 * the counts and the heartbeat; after SIGKILL the heartbeat goes stale, and
 * another monitor has another generation.
 */
#include <sched.h>
#include <signal.h>
#include "harness.h"

static bool is_stale(const struct fg_counters *c)
{
	return fg_now_ns() - c->heartbeat_ns > FG_HEARTBEAT_STALE_NS;
}

int main(void)
{
	struct monitor m, n;
	struct client c, d;
	struct actor a;
	uint64_t beat, generation;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	CHECK(c.counters->heartbeat_ns);
	beat = c.counters->heartbeat_ns;
	WAIT_FOR(c.counters->heartbeat_ns > beat);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	monitor_stop(&m);
	CHECK(all_zero(c.counters) && is_stale(c.counters));
	generation = c.counters->generation;
	CHECK(client_connect(m.name) < 0);

	monitor_start(&n, NULL);
	client_join(&d, n.name, 8);
	CHECK(d.counters->generation != generation && !is_stale(d.counters));
	a.client = &d;
	actor_get_up(&a);
	actor_slot(&a)->owner_id = 1;
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(d.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	monitor_kill(&n);
	WAIT_FOR(is_stale(d.counters));
	/* Nobody is left to take it back: this is what the heartbeat is for. */
	CHECK(d.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	actor_join(&a);
	return 0;
}
