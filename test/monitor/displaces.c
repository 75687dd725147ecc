// SPDX-License-Identifier: MIT
/*
 * slot.displaces, written at each switch-in: 1 if the thread took its CPU from
 * a thread of its own process that would have gone on, else 0.
 */
#include <sched.h>
#include <signal.h>
#include "harness.h"

enum { UNWRITTEN = 7 };

static struct client c;
static int cpus[2];

static void spin(void *arg)
{
	pin(0, cpus[0]);
	for (;;)
		;
}

/* Wakes the thread a few times; nobody else of this process is on its CPU. */
static void expect_none(struct actor *a)
{
	struct fg_slot *slot = actor_slot(a);
	int i;

	for (i = 0; i < 20; i++) {
		actor_tell(a, ACT_SLEEP);
		WAIT_FOR(slot->state == FG_STATE_SLEEP);
		__atomic_store_n(&slot->displaces, UNWRITTEN, __ATOMIC_RELEASE);
		actor_tell(a, ACT_BUSY);
		WAIT_FOR(__atomic_load_n(&slot->displaces, __ATOMIC_ACQUIRE) != UNWRITTEN);
		CHECK(!slot->displaces);
	}
}

int main(void)
{
	struct actor a, b;
	struct monitor m;
	pid_t other;
	int i;

	test_begin();
	monitor_start(&m, NULL);
	if (usable_cpus(cpus, 2) < 2)
		skip("there is only one CPU to run on: this thread would be displaced as well");
	client_join(&c, m.name, 8);
	pin(0, cpus[1]);
	actor_start(&a, &c, 1, cpus[0], SCHED_OTHER);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	expect_none(&a); /* from the idle task, or whatever else is there */

	actor_start(&b, &c, 2, cpus[0], SCHED_OTHER);
	actor_tell(&b, ACT_BUSY);
	WAIT_FOR(c.slots[1].displaces == 1);
	WAIT_FOR(c.slots[2].displaces == 1);

	/* From a thread of its process that goes to sleep. */
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	WAIT_FOR(!c.slots[2].displaces);
	for (i = 0; i < 50; i++) {
		CHECK(!c.slots[2].displaces);
		usleep(100);
	}
	actor_join(&b);

	other = spawn(spin, NULL);
	expect_none(&a); /* from another process that wanted to go on */
	kill(other, SIGKILL);
	CHECK(waitpid(other, NULL, 0) == other);
	actor_join(&a);
	monitor_stop(&m);
	return 0;
}
