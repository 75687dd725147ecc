/* SPDX-License-Identifier: MIT */
/*
 * The barrier: nobody leaves a round that has not all arrived, one of each round is told that it is
 * the last, nobody touches it after it has been destroyed.
 */
#include "objects/objects.h"

#include <string.h>

#include "lock/barrier.h"
#include "lock/lock.h"

static struct fg_barrier barrier __attribute__((aligned(64)));
/* Of a load: what its threads have in common. */
static struct fg_lock lock __attribute__((aligned(64)));
static uint64_t in_sections __attribute__((aligned(64))); /* guarded by it */
static uint64_t counted;
static int inside;
static int arrived[ROUNDS_MAX], last[ROUNDS_MAX];
/* Written before a round, read by a neighbour before the next. */
static uint64_t mine[8] __attribute__((aligned(64)));

static UNSEEN void reset(void)
{
	_fg_barrier_init(&barrier, (uint32_t)load.threads);
	memset(arrived, 0, sizeof(arrived));
	memset(last, 0, sizeof(last));
	weak_watch(mine);
	mem_class(&barrier, sizeof(barrier), C_LOCK);
}

static UNSEEN void enter(void)
{
	if (inside++)
		violation("two threads have the mutex before a barrier");
	counted++;
}

static UNSEEN void leave(void)
{
	inside--;
}

/* Waits for the mutex are not recorded: those for the barrier are. */
static void op(struct thread *t)
{
	uint64_t from;

	for (int i = 0; i < load.sections; i++) {
		_fg_lock(&lock);
		enter();
		in_sections++;
		leave();
		_fg_unlock(&lock);
	}
	from = now();
	_fg_barrier_wait(&barrier);
	record(t, from, now());
}

static UNSEEN void sum(void)
{
	if (in_sections + 1 < counted || in_sections > counted)
		violation("what the sections before a barrier counted does not add up");
}

static UNSEEN void arrives(int round)
{
	arrived[round]++;
}

static UNSEEN void leaves(int round, bool is_last)
{
	if (arrived[round] != load.threads)
		violation("a thread left the barrier before all had arrived");
	last[round] += is_last;
}

static void check(struct thread *t)
{
	bool is_last = false;

	for (int i = 0; i < load.rounds; i++) {
		uint64_t from;

		some_work();
		if (t->id < 8 && i % 2 == 0)
			mine[t->id] = (uint64_t)i;
		else if (t->id < 7 && mine[(t->id + 1) % load.threads] != (uint64_t)i - 1)
			violation("a thread does not see what another did before the barrier");
		arrives(i);
		from = now();
		is_last = _fg_barrier_wait(&barrier);
		leaves(i, is_last);
		record(t, from, now());
	}
	if (is_last) {
		_fg_barrier_destroy(&barrier);
		mem_retire(&barrier, sizeof(barrier), "a barrier after it was destroyed");
	}
}

static UNSEEN void after(void)
{
	nothing_is_said();
	for (int i = 0; i < load.rounds; i++)
		if (last[i] != 1)
			violation("not one of a round was told that it is the last");
}

const struct object object_barrier = {
    .name = "barrier", .reset = reset, .op = op, .sum = sum, .check = check, .after = after};
