/* SPDX-License-Identifier: MIT */
/*
 * An owner that the guest's scheduler has on a CPU, which the hypervisor has taken off: it counts
 * as preempted, and its waiter goes to sleep after the grace; on another CPU than that it does not.
 */
#include "../tools/check.h"

#include "runtime/decide.h"

enum { CPU = 5, QUESTIONS = 20000 };
static struct fg_counters counters;
static uint32_t owner;
static int go_on;

static void *be_owner(void *arg)
{
	STORE(owner, fg_self()->id);
	UNTIL(LOAD(go_on));
	return arg;
}

/* Within far less than the cap of a wait. */
static bool is_given_up(void)
{
	struct fg_wait w = {.self = fg_self(), .owner = owner};

	for (int i = 0; i < QUESTIONS; i++)
		if (fg_decide(&w) == FG_BLOCK)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct fg_slot *slot;
	pthread_t t;

	check_begin(argv[0], 20);
	fg_self();
	counters.heartbeat_ns = fg_now_ns();
	fg_policy_monitor(&counters, FG_DOMAIN_ALL);
	fg_slots_seen = FG_PIECE;
	t = start(be_owner, NULL);
	UNTIL(LOAD(owner));
	slot = (struct fg_slot *)fg_slot_look(fg_id_index(owner));
	fg_store_relaxed(&slot->state, FG_STATE_ON);
	fg_store_relaxed(&slot->cpu, CPU);
	CHECK(!fg_is_owner_off(owner) && !fg_is_off_cpu(fg_id_index(owner)));
	counters.cpu[CPU].vcpu_off = 1;
	CHECK(fg_is_owner_off(owner) && fg_is_off_cpu(fg_id_index(owner)));
	CHECK(is_given_up());
	fg_store_relaxed(&slot->cpu, CPU + 1);
	CHECK(!fg_is_owner_off(owner) && !fg_is_off_cpu(fg_id_index(owner)));
	/* One that has none */
	fg_store_relaxed(&slot->cpu, FG_MAX_CPUS);
	CHECK(!fg_is_owner_off(owner));
	STORE(go_on, 1);
	join(t);
	return 0;
}
