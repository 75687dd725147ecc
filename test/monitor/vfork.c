// SPDX-License-Identifier: MIT
/* Case 10: a holder that waits for its vfork child is b; the child, in its memory, is nothing. */
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;
static struct client c;
static int gate[2];

static void *forker(void *arg)
{
	struct actor *a = arg;
	char byte;
	pid_t pid;

	bind_thread(&c, 1);
	actor_acquire(a);
	pid = vfork();
	if (!pid) {
		if (read(gate[0], &byte, 1) != 1)
			_exit(2);
		_exit(0);
	}
	actor_release(a);
	reap(pid);
	return NULL;
}

int main(void)
{
	struct actor a = {.client = &c, .slot = 1};
	pthread_t thread;

	test_begin();
	monitor_start(&m, NULL);
	CHECK(!pipe(gate));
	client_join(&c, m.name, 8);
	CHECK(!pthread_create(&thread, NULL, forker, &a));
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	CHECK(c.slots[1].state == FG_STATE_SLEEP && c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
	CHECK(all_sane(c.counters, 1));
	CHECK(write(gate[1], "", 1) == 1);
	CHECK(!pthread_join(thread, NULL));
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
