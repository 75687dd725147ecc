/* SPDX-License-Identifier: MIT */
/* The spinlock: nobody else is in the section; when all have gone, nobody is counted as asleep. */
#include "objects/objects.h"

#include <string.h>

#include "lock/spin.h"

#define LOCKS 2
static struct place {
	int32_t lock __attribute__((aligned(64)));
	uint64_t data[8] __attribute__((aligned(64)));
} place[LOCKS];
static int inside[LOCKS];
static struct about about[LOCKS];

static UNSEEN void reset(void)
{
	memset(inside, 0, sizeof(inside));
	memset(about, 0, sizeof(about));
	for (int i = 0; i < LOCKS; i++) {
		place[i].lock = FG_SPIN_FREE;
		weak_watch(place[i].data);
		mem_class(&place[i].lock, 64, C_LOCK);
		mem_class(place[i].data, sizeof(place[i].data), C_DATA);
	}
	mem_class(_fg_spin_buckets, sizeof(_fg_spin_buckets), C_NODE);
}

static UNSEEN void enter(int which)
{
	if (inside[which]++)
		violation("two threads have the spinlock");
}

static UNSEEN void leave(int which)
{
	inside[which]--;
}

static void release(void *arg)
{
	int which = (int)((struct place *)arg - place);

	leave(which);
	_fg_spin_unlock(&place[which].lock);
}

static void section(struct thread *t, int which, uint64_t from)
{
	uint64_t got = now();

	enter(which);
	place[which].data[0]++;
	if (load.cs)
		sim_work(load.cs);
	if (load.forks)
		fork_sometimes(t, release, &place[which]);
	leave(which);
	_fg_spin_unlock(&place[which].lock);
	record(t, from, got);
}

static void op(struct thread *t)
{
	uint64_t from = now();

	_fg_spin_lock(&place[0].lock, NULL);
	section(t, 0, from);
}

static void check(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		int which = !load.forking && one_in(3), looked = come(&about[which]);
		uint64_t from = now();
		bool got = true;

		if (one_in(8))
			got = _fg_spin_trylock(&place[which].lock, fg_self());
		else
			_fg_spin_lock(&place[which].lock, NULL);
		if (got)
			section(t, which, from);
		else if (!in_the_way(&about[which], looked))
			violation("a thread gave up though nobody was about");
		gone(&about[which]);
		some_work();
	}
}

static UNSEEN void renew(void)
{
}

static UNSEEN void after(void)
{
	for (int i = 0; i < LOCKS; i++)
		if (place[i].lock != FG_SPIN_FREE)
			violation("a free spinlock is held");
	for (unsigned i = 0; i < FG_SPIN_BUCKETS; i++) {
		const struct fg_spin_bucket *b = &_fg_spin_buckets[i];

		if (b->sleepers & FG_SPIN_SLEEPERS)
			violation("the table counts a sleeper that is gone");
		for (unsigned w = 0; w < FG_SPIN_WAYS; w++)
			if (b->way[w].who << 36) /* all below the turn */
				violation("a way counts somebody who is gone");
	}
}

const struct object object_spin = {
    .name = "spin", .reset = reset, .op = op, .check = check, .after = after, .renew = renew};
