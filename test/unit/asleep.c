/* SPDX-License-Identifier: MIT */
/*
 * What a thread publishes while it sleeps for a lock: the other one that it has, and not the one
 * that it sleeps for, whose word then nobody reads on its account; and when it has it, that one.
 */
#include "../tools/check.h"

#include "lock/lock.h"
#include "runtime/decide.h"

static struct fg_lock other, l;
static uint32_t sleeper, has_it, go_on;

static void *sleep_for_it(void *arg)
{
	_fg_lock(&other);
	__atomic_store_n(&sleeper, fg_self()->id, __ATOMIC_RELEASE);
	_fg_lock(&l);
	STORE(has_it, 1);
	UNTIL(LOAD(go_on));
	_fg_unlock(&l);
	_fg_unlock(&other);
	return arg;
}

int main(int argc, char **argv)
{
	const struct fg_slot *slot;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	fg_policy_set(FG_POLICY_BLOCK);
	_fg_lock(&l);
	t = start(sleep_for_it, NULL);
	UNTIL(LOAD(sleeper));
	slot = fg_slot_look(fg_id_index(sleeper));
	UNTIL(fg_load_relaxed(&slot->stats[FG_SLOT_PARKS]) && !fg_load_relaxed(&slot->pending));
	CHECK_EQ(fg_load_relaxed(&slot->cs), 1);
	_fg_unlock(&l);
	UNTIL(LOAD(has_it));
	CHECK_EQ(fg_load_relaxed(&slot->pending), (uint64_t)(uintptr_t)&l);
	STORE(go_on, 1);
	join(t);
	CHECK_EQ(fg_load_relaxed(&slot->pending), 0);
	return 0;
}
