// SPDX-License-Identifier: MIT
/*
 * slot.shares_since, written at each switch-in: when, if the thread has waited for its CPU and took
 * it from a thread of another process that would have gone on, else 0.  slot.turn: how long that
 * was, when it has lost it again.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>
#include "harness.h"

static struct client c;
static int cpus[2];

static void spin(void *arg)
{
	pin(0, cpus[0]);
	for (;;)
		;
}

static uint32_t units(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint32_t)(((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) >>
			  FG_SHARES_LOG2);
}

/*
 * When it comes on after a sleep.  Where it has lost its CPU again before it is looked at, that
 * does not count.
 */
static void expect_none(struct actor *a)
{
	struct fg_slot *slot = actor_slot(a);
	uint64_t before;
	uint32_t since;

	do {
		actor_tell(a, ACT_SLEEP);
		WAIT_FOR(slot->state == FG_STATE_SLEEP);
		__atomic_store_n(&slot->shares_since, 1, __ATOMIC_RELEASE);
		before = __atomic_load_n(&slot->involuntary, __ATOMIC_ACQUIRE);
		actor_tell(a, ACT_BUSY);
		WAIT_FOR((since = __atomic_load_n(&slot->shares_since, __ATOMIC_ACQUIRE)) != 1);
	} while (__atomic_load_n(&slot->involuntary, __ATOMIC_ACQUIRE) != before);
	CHECK(!since);
}

static void expect_turns(struct actor *a)
{
	struct fg_slot *slot = actor_slot(a);
	uint32_t before = units(), since = 0, turn = 0;

	/* It comes on again and again. */
	WAIT_FOR((since = __atomic_load_n(&slot->shares_since, __ATOMIC_ACQUIRE)) != 0 &&
		 (int32_t)(since - before) > 0);
	CHECK((int32_t)(units() + 1 - since) >= 0);
	__atomic_store_n(&slot->turn, 0, __ATOMIC_RELEASE);
	WAIT_FOR((turn = __atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE)) != 0);
	CHECK(turn <= units() + 2 - before);
}

int main(void)
{
	struct actor a, b;
	struct monitor m;
	pid_t other;

	test_begin();
	monitor_start(&m, NULL);
	if (usable_cpus(cpus, 2) < 2)
		skip("there is only one CPU to run on: this program would be displaced as well");
	client_join(&c, m.name, 8);
	pin(0, cpus[1]);
	actor_start(&a, &c, 1, cpus[0], SCHED_OTHER);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	expect_none(&a); /* from the idle task */

	other = spawn(spin, NULL);
	expect_none(&a); /* not after a sleep */
	expect_turns(&a);
	kill(other, SIGKILL);
	CHECK(waitpid(other, NULL, 0) == other);

	/* From one of its own process. */
	actor_start(&b, &c, 2, cpus[0], SCHED_OTHER);
	actor_tell(&b, ACT_BUSY);
	WAIT_FOR(c.slots[2].displaces && !c.slots[2].shares_since);
	WAIT_FOR(c.slots[1].displaces && !c.slots[1].shares_since);
	actor_join(&b);
	actor_join(&a);
	monitor_stop(&m);
	return 0;
}
