/* SPDX-License-Identifier: MIT */
/* Mutexes, the product's and those of the zoo: nobody else is in the section. */
#include "objects/objects.h"

#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"
#include "zoo/zoo.h"

static struct place {
	union {
		struct fg_lock fg;
		struct zoo_mutex zoo;
	} lock __attribute__((aligned(64)));
	uint64_t data[8] __attribute__((aligned(64)));
	uint64_t unused[8], second[8];
} __attribute__((aligned(64))) * place;
static int *inside; /* of no cache line: see enter() */
static const struct zoo_lock *zoo;

static const struct {
	const char *name;
	const struct zoo_lock *zoo;
} table[] = {{"flexguard", NULL},
#define ZOO(id, name, ...) {name, &zoo_##id},
	     ZOO_TABLE(ZOO)
#undef ZOO
};

static bool choose(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name)) {
			zoo = table[i].zoo;
			return !zoo || zoo->lock; /* glibc's are not here */
		}
	return false;
}

static UNSEEN void reset(void)
{
	size_t n = (size_t)load.locks;

	if (!place) {
		place = aligned_alloc(64, n * sizeof(*place));
		inside = malloc(n * sizeof(*inside));
		if (!place || !inside)
			abort();
	}
	memset(place, 0, n * sizeof(*place));
	memset(inside, 0, n * sizeof(*inside));
	for (int i = 0; i < load.locks && i < 4; i++) {
		weak_watch(place[i].data);
		weak_watch(place[i].second);
		mem_class(&place[i].lock, sizeof(place[i].lock), C_LOCK);
		mem_class(place[i].data, sizeof(place[i].data) + 128, C_DATA);
	}
}

static UNSEEN void enter(int which)
{
	if (inside[which]++)
		violation("two threads have the mutex");
}

static UNSEEN void leave(int which)
{
	inside[which]--;
}

/* As zoo/mutex.c does. */
static void lock(struct place *p)
{
	if (!zoo)
		_fg_lock(&p->lock.fg);
	else if (zoo->untried || !(zoo->first ? zoo->first : zoo->trylock)(&p->lock.zoo))
		zoo->lock(&p->lock.zoo, NULL);
}

static void unlock(struct place *p)
{
	if (zoo)
		zoo->unlock(&p->lock.zoo);
	else
		_fg_unlock(&p->lock.fg);
}

static void release(void *arg)
{
	struct place *p = arg;

	leave((int)(p - place));
	unlock(p);
}

static void section(struct thread *t, struct place *p, uint64_t from)
{
	int which = (int)(p - place);
	uint64_t got = now();

	enter(which);
	p->data[0]++;
	p->second[0]++;
	if (load.cs)
		sim_work(load.cs);
	if (load.forks)
		fork_sometimes(t, release, p);
	leave(which);
	unlock(p);
	record(t, from, got);
}

static void op(struct thread *t)
{
	struct place *p = &place[load_which()];
	uint64_t from = now();

	lock(p);
	section(t, p, from);
}

/* Or tries to, or for some time only. */
static bool lock_somehow(struct place *p)
{
	struct fg_deadline d;

	switch (rng() % 8) {
	case 0:
		if (zoo)
			break;
		fg_deadline_in(&d, some_ns());
		return _fg_lock_fast(&p->lock.fg) || !_fg_lock_slow(&p->lock.fg, &d);
	case 1: return zoo ? zoo->trylock(&p->lock.zoo) : _fg_trylock(&p->lock.fg);
	}
	lock(p);
	return true;
}

static void check(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		struct place *p = &place[load_which()];
		uint64_t from = now();

		if (lock_somehow(p))
			section(t, p, from);
		some_work();
	}
}

/* What others had of other mutexes is theirs for ever; there is one. */
static UNSEEN void renew(void)
{
}

/* In the middle of taking or releasing it, unless another thread has it: that would be for good. */
static UNSEEN void interrupt(struct thread *t)
{
	uint32_t owner = place[0].lock.fg.word & FG_WORD_ID;

	(void)t;
	if (!zoo && load.forks && (!owner || owner == fg_self_tls.id) && (owner || !inside[0]))
		fork_here();
}

static UNSEEN void after(void)
{
	for (int i = 0; i < load.locks; i++) {
		if (inside[i])
			violation("a mutex is held by nobody");
		if (!zoo && (place[i].lock.fg.word & FG_WORD_ID))
			violation("the word of a free mutex has an owner");
		if (place[i].data[0] != place[i].second[0])
			violation("a section was done by half");
	}
}

const struct object object_mutex = {.name = "mutex",
				    .lock = choose,
				    .reset = reset,
				    .op = op,
				    .check = check,
				    .after = after,
				    .renew = renew,
				    .interrupt = interrupt};
