// SPDX-License-Identifier: MIT
/*
 * Case 1: a holder that is preempted in user code is counted as p, in its
 * domain and on its CPU, as long as it is off CPU; no longer, and not after it
 * has released the lock.
 */
#include <sched.h>
#include "harness.h"

int main(void)
{
	struct actor holder, hog;
	struct monitor m;
	struct client c;
	struct fg_slot *slot;
	uint64_t events, switches;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, 8);
	CHECK(c.welcome.domain > FG_DOMAIN_ALL && c.welcome.domain < FG_MAX_DOMAINS);
	CHECK(c.counters->generation && all_zero(c.counters));
	actor_start(&holder, &c, 1, cpu, SCHED_OTHER);
	actor_start(&hog, NULL, 0, cpu, SCHED_OTHER);
	slot = actor_slot(&holder);
	actor_tell(&hog, ACT_BUSY);
	actor_tell(&holder, ACT_BUSY);

	/* Not critical: switched, never counted. */
	WAIT_FOR(slot->involuntary >= 5);
	CHECK(slot->bound == (uint32_t)holder.tid && slot->cpu == (uint32_t)cpu);
	CHECK(!slot->preempted && !slot->blocked && all_zero(c.counters));

	/* pending names a word that somebody else owns: a waiter, not a holder. */
	holder.word = 7;
	slot->pending = (uintptr_t)&holder.word;
	switches = slot->involuntary;
	WAIT_FOR(slot->involuntary >= switches + 5);
	CHECK(!slot->preempted && all_zero(c.counters));

	/* The flags in the word's upper bits are none of the monitor's business. */
	holder.word = slot->owner_id | FG_WORD_WAITERS | FG_WORD_SPINNER;
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].preempted == 1);
	WAIT_FOR(c.counters->queued[cpu][c.welcome.domain] == 1);
	WAIT_FOR(c.counters->usable[c.welcome.domain][cpu >> c.counters->cpu_shift] == 1);
	WAIT_FOR(c.counters->cpu[cpu].preempted == 1);
	WAIT_FOR(slot->state == FG_STATE_RUNNABLE);
	WAIT_FOR(slot->state == FG_STATE_ON);
	WAIT_FOR(slot->preempted >= 5);
	CHECK(all_sane(c.counters, 1));
	WAIT_FOR(all_zero(c.counters)); /* it runs again, still holding */

	actor_release(&holder);
	switches = slot->involuntary;
	WAIT_FOR(slot->involuntary >= switches + 2);
	events = slot->preempted;
	WAIT_FOR(slot->involuntary >= switches + 8);
	CHECK(slot->preempted == events);
	CHECK(all_zero(c.counters));
	CHECK(ever_preempted(c.counters) == events);
	CHECK(c.counters->cpu[cpu].total_preempted == events);

	actor_join(&hog);
	actor_join(&holder);
	monitor_stop(&m);
	return 0;
}
