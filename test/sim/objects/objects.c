/* SPDX-License-Identifier: MIT */
/* What the programs around all objects share: the load's loop, its figures, the checks' notes. */
#include "objects/objects.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/arch.h"
#include "runtime/thread.h"
#include "sys/futex.h"

struct load load;
struct results results;
static uint64_t last_got; /* when any thread got anything */

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
	handlers_reset();
	last_got = results.idle = 0;
	load.object->reset();
	load_mapped(fg_chunks[0], sizeof(*fg_chunks[0]));
}

/*
 * In the child of a fork, and where others release what a thread had, there is more that it does
 * not know yet.  And a signal handler that takes the very lock that its thread is just releasing,
 * and another one, and releases them crossed, leaves the thread critical until it next takes a lock
 * the long way.
 */
UNSEEN void nothing_is_said(void)
{
	for (uint32_t i = 1; i < FG_PIECE && !load.forking && !load.foreign; i++) {
		const struct fg_slot *slot = &fg_chunks[0]->slot[i];
		const struct fg_thread *th = &fg_chunks[0]->thread[i];

		if (slot->pending || slot->sections || slot->role != FG_ROLE_NONE ||
		    (slot->cs && !load.handlers))
			violation("a thread that has nothing says that it has");
		for (int k = 0; k < FG_NODES; k++)
			if (th->node[k].state & FG_NODE_STATE_MASK)
				violation("a node is left in a queue");
		if (th->nodes_used || th->kept)
			violation("a thread uses a node that is in no queue");
	}
}

void load_interrupt(struct thread *t)
{
	if (load.object->interrupt)
		load.object->interrupt(t);
	else
		handlers_interrupt(t);
}

UNSEEN void violation(const char *what)
{
	if (!results.violations++)
		strncpy(results.what, what, sizeof(results.what) - 1);
}

UNSEEN int look_about(const struct about *a)
{
	return a->now ? -1 : a->ever;
}

UNSEEN int come(struct about *a)
{
	int looked;

	a->ever++;
	looked = look_about(a);
	a->now++;
	return looked;
}

UNSEEN void gone(struct about *a)
{
	a->now--;
}

UNSEEN bool in_the_way(const struct about *a, int looked)
{
	/* With --weak what is over may not have been seen everywhere yet. */
	return weak || looked != a->ever;
}

UNSEEN void time_was_over(const struct fg_deadline *d)
{
	struct timespec t;

	sim_syscall(SYS_clock_gettime, d->clock, (long)&t, 0, 0, 0, 0);
	if (t.tv_sec < d->at.tv_sec || (t.tv_sec == d->at.tv_sec && t.tv_nsec < d->at.tv_nsec))
		violation("a thread gave up before its time was over");
}

UNSEEN uint64_t now(void)
{
	return here->now;
}

UNSEEN uint64_t begins(struct thread *t)
{
	return t->waits_from = here->now;
}

UNSEEN uint64_t gets(struct thread *t)
{
	t->waits_from = 0;
	return here->now;
}

static UNSEEN void got_something(uint64_t at)
{
	if (at <= last_got)
		return;
	if (at - last_got > results.idle)
		results.idle = at - last_got;
	last_got = at;
}

UNSEEN void gets_on(void)
{
	got_something(here->now);
}

UNSEEN void record(struct thread *t, uint64_t from, uint64_t got)
{
	uint64_t wait = got - from, ns = wait / NS;
	int log = ns ? 63 - __builtin_clzll(ns) : 0;
	int b = ns ? 4 * log + (int)(ns >> (log > 2 ? log - 2 : 0) & 3) : 0;

	t->ops++;
	results.wait_hist[b < 256 ? b : 255]++;
	t->sum_wait += here->now - from;
	if (wait > t->max_wait)
		t->max_wait = wait;
	got_something(got);
}

UNSEEN bool one_in(uint32_t n)
{
	return rng() % n == 0;
}

UNSEEN uint64_t some_ns(void)
{
	return 1 + rng() % 20000;
}

/* Of a thread that has nothing; it may end, and the next one has its slot and its nodes. */
void some_work(void)
{
	if (load.ends_after && one_in((uint32_t)load.ends_after))
		sim_replaced();
	if (one_in(4))
		sim_work(rng() % (20 * US));
}

/* Nothing happens in between. */
static UNSEEN void begin_child(void)
{
	load.object->renew();
	for (int i = 1; i < load.threads; i++) {
		sim_spawn(load.most + i, load.object->check, here->now + (uint64_t)i * 300 * NS);
		threads[load.most + i].role = i;
	}
}

UNSEEN void fork_here(void)
{
	load.forks = false; /* also in a handler that interrupts this */
	sim_fork();
	load.threads = 2 + (int)(rng() % (uint64_t)(load.most - 1));
	begin_child();
}

void fork_sometimes(struct thread *t, void (*release)(void *), void *arg)
{
	if (!load.forks || t->role || !one_in(3))
		return;
	fork_here();
	release(arg);
	load.object->check(t);
	sim_exit();
}

static UNSEEN void work_for(uint64_t ns)
{
	if (ns)
		sim_work(load.varies ? rng() % (2 * ns + 1) : ns);
}

static void sleep_for(uint64_t ns)
{
	const struct timespec time = {.tv_nsec = (long)(ns / NS)};

	sim_syscall(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

void work_inside(void)
{
	work_for(load.cs);
	if (load.yields)
		sim_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	if (load.sleeps)
		sleep_for(load.sleeps);
}

/* What some loads do between two operations, besides `think`. */
static UNSEEN void between(struct thread *t)
{
	if (load.uneven)
		sim_work(rng() % (load.think + 1));
	if (load.ends_after && ++t->made == (uint64_t)load.ends_after) {
		t->made = 0;
		sim_replaced();
	}
}

void load_body(struct thread *t)
{
	fg_self();
	__atomic_fetch_add(&results.started, 1, __ATOMIC_RELAXED);
	while (results.started < load.threads) /* all begin together */
		sleep_for(20 * US);
	for (;;) {
		load.object->op(t);
		work_for(load.think);
		between(t);
	}
}
