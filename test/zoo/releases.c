/* SPDX-License-Identifier: MIT */
/*
 * The fair ulock that spins: a release with a waiter that is awake makes no system call, one with a
 * sleeper does. The library's objects are part of this program.
 */
#include "../tools/check.h"

#include <sched.h>

#include "runtime/policy.h"
#include "runtime/thread.h"
#include "zoo/zoo.h"

static struct zoo_mutex m;
static struct fg_slot *slot;

static void *lock_it(void *arg)
{
	const struct zoo_lock *z = arg;

	STORE(slot, fg_self()->slot);
	z->lock(&m, NULL);
	z->unlock(&m);
	return NULL;
}

/* Calls to wake somebody, of this thread's one release. */
static uint32_t wakes(const struct zoo_lock *z, bool asleep)
{
	const struct fg_slot *mine = fg_self()->slot;
	uint32_t before = LOAD(mine->stats[FG_SLOT_WAKEUPS]);
	pthread_t t;

	slot = NULL;
	CHECK(z->trylock(&m));
	t = start(lock_it, (void *)(uintptr_t)z);
	while (LOAD(m.s.u32[0]) != 2)
		sched_yield();
	/* It is counted just before it sleeps, and the kernel looks again. */
	while (asleep && !LOAD(m.s.u64[1]))
		sched_yield();
	z->unlock(&m);
	join(t);
	CHECK(!LOAD(m.s.u64[0]) && !LOAD(m.s.u64[1]));
	return LOAD(mine->stats[FG_SLOT_WAKEUPS]) - before;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 40);
	fg_spin_ns = 3600ull * 1000000000;
	for (int i = 0; i < 20; i++)
		CHECK_EQ(wakes(&zoo_usemaspin, false), 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(wakes(&zoo_usema, true), 1);
	return 0;
}
