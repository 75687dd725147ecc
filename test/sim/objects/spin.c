/* SPDX-License-Identifier: MIT */
/*
 * The spinlock: nobody else is in the section; when all have gone, nobody is counted as asleep, and
 * the gates are free.
 */
#include "objects/objects.h"

#include <string.h>

#include "lock/spin.h"
#include "lock/gate.h"

#define LOCKS 2
static struct place {
	int32_t lock __attribute__((aligned(64)));
	uint64_t data[8] __attribute__((aligned(64)));
} first, others[1024];
static uint32_t second; /* of the others: one that shares the gate of the first, or not */
static int inside[LOCKS];
static struct about about[LOCKS];

static struct place *place(int which)
{
	return which ? &others[second] : &first;
}

static UNSEEN void choose_second(void)
{
	const struct fg_lock *gate = _fg_gate(&first.lock);
	bool shares = one_in(2);

	for (second = 0; second < sizeof(others) / sizeof(others[0]) - 1; second++)
		if ((_fg_gate(&others[second].lock) == gate) == shares)
			break;
}

static UNSEEN void reset(void)
{
	choose_second();
	memset(inside, 0, sizeof(inside));
	memset(about, 0, sizeof(about));
	for (int i = 0; i < LOCKS; i++) {
		place(i)->lock = FG_SPIN_FREE;
		weak_watch(place(i)->data);
		mem_class(&place(i)->lock, 64, C_LOCK);
		mem_class(place(i)->data, sizeof(place(i)->data), C_DATA);
		mem_class(_fg_gate(&place(i)->lock), 64, C_NODE);
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

static void unlock(int which)
{
	leave(which);
	_fg_spin_unlock(&place(which)->lock);
}

static void release(void *arg)
{
	unlock(arg != &first);
}

static void section(struct thread *t, int which, uint64_t from)
{
	uint64_t got = gets(t);

	enter(which);
	place(which)->data[0]++;
	work_inside();
	if (load.forks)
		fork_sometimes(t, release, place(which));
	unlock(which);
	record(t, from, got);
}

static void op(struct thread *t)
{
	uint64_t from = begins(t);

	_fg_spin_lock(&place(0)->lock, NULL);
	section(t, 0, from);
}

/*
 * The second one with the first in hand.  Who waits for the first may have the gate that the two
 * share: whoever waits behind it must not do so for ever.
 */
static void take_the_second(struct thread *t)
{
	bool in_order = one_in(2);
	uint64_t from = now();

	enter(0);
	place(0)->data[0]++;
	come(&about[1]);
	_fg_spin_lock(&place(1)->lock, NULL);
	enter(1);
	place(1)->data[0]++;
	work_inside();
	unlock(!in_order);
	unlock(in_order);
	gone(&about[1]);
	record(t, from, now());
}

static void check(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		int which = !load.forking && one_in(3), looked = come(&about[which]);
		uint64_t from = now();
		bool got = true;

		if (one_in(8))
			got = _fg_spin_trylock(&place(which)->lock, fg_self());
		else
			_fg_spin_lock(&place(which)->lock, NULL);
		if (got && !which && load.locks > 1 && one_in(2))
			take_the_second(t);
		else if (got)
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

/* In the middle of taking or releasing it, unless another thread has it: that would be for good. */
static UNSEEN void interrupt(struct thread *t)
{
	int32_t value = place(0)->lock;
	uint32_t owner = (uint32_t)value >> 12 & (FG_MAX_THREADS - 1);

	if (load.handlers)
		handlers_interrupt(t);
	else if (load.forks && (value == FG_SPIN_FREE || owner == fg_id_index(fg_self_tls.id)))
		fork_here();
}

static UNSEEN void after(void)
{
	nothing_is_said();
	for (int i = 0; i < LOCKS; i++) {
		if (place(i)->lock != FG_SPIN_FREE)
			violation("a free spinlock is held");
		/* In a child the tail may be one of the parent's, which nobody joins. */
		if (_fg_gate(&place(i)->lock)->word ||
		    (!load.forking && _fg_gate(&place(i)->lock)->tail))
			violation("somebody is left at a gate");
	}
	for (unsigned i = 0; i < FG_SPIN_BUCKETS; i++) {
		const struct fg_spin_bucket *b = &_fg_spin_buckets[i];

		if (b->sleepers & FG_SPIN_SLEEPERS)
			violation("the table counts a sleeper that is gone");
		for (unsigned w = 0; w < FG_SPIN_WAYS; w++)
			if (b->way[w].who << 36) /* all below the turn */
				violation("a way counts somebody who is gone");
	}
}

const struct object object_spin = {.name = "spin",
				   .reset = reset,
				   .op = op,
				   .check = check,
				   .after = after,
				   .renew = renew,
				   .interrupt = interrupt};
