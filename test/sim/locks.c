/* SPDX-License-Identifier: MIT */
/*
 * The threads' programs: the same loop around each lock.  Compiled as the lock
 * code is, so that its own accesses count.
 */
#include <string.h>
#include "runtime/decide.h"
#include "lock/lock.h"
#include "zoo/zoo.h"
#include "sim.h"
#include "locks.h"

struct load load;
struct results results;
static struct place {
	union {
		struct fg_lock fg;
		struct zoo_mutex zoo;
	} lock __attribute__((aligned(64)));
	struct {
		uint64_t n;
	} line[8] __attribute__((aligned(64)));
	uint64_t unused[8], second[8];
} __attribute__((aligned(64))) place[MAX_LOCKS];
static int inside[MAX_LOCKS]; /* of no cache line: see check_* */

static const struct {
	const char *name;
	const struct zoo_lock *zoo;
} table[] = {{"flexguard", NULL},
#define ZOO(id, name, ...) {name, &zoo_##id},
	     ZOO_TABLE(ZOO)
#undef ZOO
};

bool load_lock(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name)) {
			load.zoo = table[i].zoo;
			return true;
		}
	return false;
}

/* Slots and nodes of more threads. */
void load_mapped(void *at, uint64_t size)
{
	struct fg_chunk *c = at;

	if (size != sizeof(*c))
		return;
	mem_class(c->slot, sizeof(c->slot), C_SLOT);
	mem_class(c->thread, sizeof(c->thread), C_NODE);
}

void load_reset(void)
{
	memset(place, 0, sizeof(place));
	memset(inside, 0, sizeof(inside));
	for (int i = 0; i < load.locks && i < 4; i++) {
		mem_class(&place[i].lock, sizeof(place[i].lock), C_LOCK);
		mem_class(place[i].line, sizeof(place[i].line) + 192, C_DATA);
	}
	load_mapped(fg_chunks[0], sizeof(*fg_chunks[0]));
}

/* The checks' own accesses shall cost nothing and be atomic. */
#define UNSEEN __attribute__((no_sanitize("thread"), noinline)) static
UNSEEN void check_enter(int which)
{
	results.violations += inside[which]++ != 0;
}
UNSEEN void check_leave(int which)
{
	inside[which]--;
}
UNSEEN void record(struct thread *t, uint64_t from, uint64_t got, uint64_t to)
{
	uint64_t wait = got - from, ns = wait / NS;
	int log = ns ? 63 - __builtin_clzll(ns) : 0;
	int b = ns ? 4 * log + (int)(ns >> (log > 2 ? log - 2 : 0) & 3) : 0;

	t->ops++;
	results.wait_hist[b < 256 ? b : 255]++;
	t->sum_wait += to - from;
	if (wait > t->max_wait)
		t->max_wait = wait;
}
UNSEEN uint64_t now(void)
{
	return here->now;
}

static bool section(struct thread *t, uint64_t timed_ns)
{
	int which = load.locks > 1 ? (int)(rng() % (uint64_t)load.locks) : 0;
	struct place *p = &place[which];
	uint64_t from = now(), got;

	if (load.zoo)
		load.zoo->lock(&p->lock.zoo, NULL);
	else if (timed_ns) {
		struct fg_deadline d;

		fg_deadline_in(&d, timed_ns);
		if (!_fg_lock_fast(&p->lock.fg) && _fg_lock_slow(&p->lock.fg, &d))
			return false;
	} else
		_fg_lock(&p->lock.fg);
	got = now();
	check_enter(which);
	p->line[0].n++;
	p->second[0]++;
	if (load.cs)
		sim_work(load.cs);
	check_leave(which);
	if (load.zoo)
		load.zoo->unlock(&p->lock.zoo);
	else
		_fg_unlock(&p->lock.fg);
	record(t, from, got, now());
	return true;
}

void load_body(struct thread *t)
{
	static const struct timespec soon = {.tv_nsec = 20000};

	fg_self();
	__atomic_fetch_add(&results.started, 1, __ATOMIC_RELAXED);
	while (results.started < load.threads) /* all begin together */
		sim_syscall(SYS_nanosleep, (long)&soon, 0, 0, 0, 0, 0);
	for (;;) {
		section(t, 0);
		sim_work(load.think);
	}
}

void check_body(struct thread *t)
{
	for (int i = 0; i < load.rounds; i++) {
		if (!load.zoo && rng() % 8 == 0)
			section(t, 1 + rng() % 20000);
		else
			section(t, 0);
		if (rng() % 4 == 0)
			sim_work(rng() % (20 * US));
	}
}

/* What the shipped code counted itself. */
uint64_t load_stat(int what)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= fg_threads_highest(); i++)
		sum += fg_slot_look(i)->stats[what];
	return sum;
}
