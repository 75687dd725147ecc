// SPDX-License-Identifier: MIT
/*
 * The switch of the BPF Hybrid Lock (FG_ROLE_MODE): the program asks for it when an owner that
 * names a slot loses its CPU in a section; not outside of one, not when it goes to sleep, and in no
 * other slot than that one.
 */
#include <sched.h>
#include "harness.h"

enum { OWNER = 1, MODE = 5, SLOTS = 8 };

static struct client c;

static uint32_t *mode(uint32_t number)
{
	return &c.slots[number].mode;
}

static uint32_t asked(void)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		bits |= (uint32_t)(__atomic_load_n(mode(i), __ATOMIC_ACQUIRE) != 0) << i;
	return bits;
}

int main(void)
{
	struct actor owner, hog;
	struct monitor m;
	struct fg_slot *slot;
	uint64_t switches, preempted;
	int cpu;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	client_join(&c, m.name, SLOTS);
	actor_start(&owner, &c, OWNER, cpu, SCHED_OTHER);
	actor_start(&hog, NULL, 0, cpu, SCHED_OTHER);
	slot = actor_slot(&owner);
	actor_tell(&hog, ACT_BUSY);
	actor_tell(&owner, ACT_BUSY);

	/* In no section: preempted, and nobody is asked. */
	slot->role = MODE << FG_ROLE_MODE;
	switches = slot->involuntary;
	WAIT_FOR(slot->involuntary >= switches + 5);
	CHECK(!asked());

	slot->sections = 1;
	WAIT_FOR(asked());
	CHECK(asked() == 1u << MODE);
	WAIT_FOR(slot->preempted);

	/* It asks again, once it has been answered. */
	preempted = slot->preempted;
	__atomic_store_n(mode(MODE), 0, __ATOMIC_RELEASE);
	WAIT_FOR(asked() == 1u << MODE);
	CHECK(slot->preempted >= preempted);

	/* A thread that names none, or one beyond the array, asks nobody, and is preempted, too. */
	slot->role = FG_ROLE_NONE;
	switches = slot->involuntary;
	WAIT_FOR(slot->involuntary >= switches + 2);
	__atomic_store_n(mode(MODE), 0, __ATOMIC_RELEASE);
	slot->role = 0xffffffu << FG_ROLE_MODE;
	preempted = slot->preempted;
	WAIT_FOR(slot->preempted >= preempted + 3);
	CHECK(!asked());

	/* Asleep in the section: there is nothing to be won by a switch. */
	actor_tell(&hog, ACT_SLEEP);
	actor_tell(&owner, ACT_SLEEP);
	WAIT_FOR(slot->state == FG_STATE_SLEEP);
	usleep(1000);
	__atomic_store_n(mode(MODE), 0, __ATOMIC_RELEASE);
	slot->role = MODE << FG_ROLE_MODE;
	slot->sections = 0;
	actor_join(&hog);
	actor_join(&owner);
	monitor_stop(&m);
	return 0;
}
