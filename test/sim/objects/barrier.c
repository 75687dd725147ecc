/* SPDX-License-Identifier: MIT */
/*
 * The barrier: nobody leaves a round that has not all arrived, one of each round is told that it is
 * the last, nobody touches it after it has been destroyed.
 */
#include "objects/objects.h"

#include <string.h>

#include "arch/arch.h"
#include "lock/barrier.h"
#include "lock/lock.h"

static struct fg_barrier barrier __attribute__((aligned(64)));
/* Of a load: what its threads have in common. */
static struct fg_lock lock __attribute__((aligned(64)));
static uint64_t in_sections __attribute__((aligned(64))); /* guarded by it */
static uint64_t counted;
static int inside;
static int arrived[ROUNDS_MAX], last[ROUNDS_MAX];
/* Of schedules with more threads than participants: in all rounds. */
static int participants, to_come, come_by, gone_by, lasts;
/* It has been used for so many already, half the time: the count, of 31 bits, turns over. */
#define ROUNDS_OF 0x7fffffffu
static uint32_t before;
static bool destroyed;
/* Written before a round, read by a neighbour before the next. */
static uint64_t mine[8] __attribute__((aligned(64)));

static UNSEEN void reset(void)
{
	participants = load.checks && one_in(4) ? 1 + (int)(rng() % (uint64_t)load.threads) :
						  load.threads;
	to_come = participants * load.rounds;
	come_by = gone_by = lasts = 0;
	destroyed = false;
	_fg_barrier_init(&barrier, (uint32_t)participants);
	before = load.checks && one_in(2) ? ROUNDS_OF - (uint32_t)(rng() % 4) : 0;
	*_fg_barrier_state(&barrier) = (uint64_t)before << 33;
	barrier.left = before * (uint32_t)participants * FG_BARRIER_LEAVER;
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
	from = begins(t);
	_fg_barrier_wait(&barrier);
	record(t, from, gets(t));
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

static UNSEEN bool comes(void)
{
	if (!to_come)
		return false;
	to_come--;
	come_by++;
	return true;
}

static UNSEEN void goes(bool is_last)
{
	lasts += is_last;
	if (++gone_by > come_by / participants * participants)
		violation("more threads left the barrier than rounds that can be over have");
}

/* One of those that are out, when nobody is left to come. */
static UNSEEN bool destroys(bool is_last)
{
	if (!is_last || to_come || destroyed)
		return false;
	destroyed = true;
	return true;
}

/* Others may be on their way out, and the last of a round before it has ended that. */
static bool all_are_in(uint64_t state)
{
	uint32_t rounds = (uint32_t)(state >> 33) - before;
	uint32_t in = rounds * (uint32_t)participants + (uint32_t)state;

	return ((in - (uint32_t)(participants * load.rounds)) & ROUNDS_OF) == 0;
}

/*
 * More threads than participants: each that comes is of the round that is next, and rounds may end
 * in any order.
 */
static void check_many(struct thread *t)
{
	while (comes()) {
		uint64_t from = now();
		bool is_last = _fg_barrier_wait(&barrier);

		goes(is_last);
		record(t, from, now());
		if (destroys(is_last)) {
			while (!all_are_in(fg_load_acquire(_fg_barrier_state(&barrier))))
				fg_pause();
			_fg_barrier_destroy(&barrier);
			mem_retire(&barrier, sizeof(barrier), "a barrier after it was destroyed");
		}
		some_work();
	}
}

static void check(struct thread *t)
{
	bool is_last = false;

	if (participants != load.threads) {
		check_many(t);
		return;
	}
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
	if (participants != load.threads && (lasts != load.rounds || gone_by != come_by))
		violation("not one of each round was told that it is the last");
	for (int i = 0; i < load.rounds && participants == load.threads; i++)
		if (last[i] != 1)
			violation("not one of a round was told that it is the last");
}

const struct object object_barrier = {
    .name = "barrier", .reset = reset, .op = op, .sum = sum, .check = check, .after = after};
