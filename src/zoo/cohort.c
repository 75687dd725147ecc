/* SPDX-License-Identifier: MIT */
/*
 * C-TKT-MCS, a cohort lock: a ticket lock for the NUMA nodes, and an MCS queue on each of them.
 * Who is the head of its node's queue draws a ticket; an owner with a waiter behind it hands the
 * ticket lock on with the queue, so many times in a row, and then releases both.  Dice, Marathe,
 * Shavit, "Lock Cohorting: A General Technique for Designing NUMA Locks", PPoPP 2012, and TOPC
 * 1(2), 2015, sections 2 and 3.
 *
 * Two differences.  The queue is left before the ticket lock is: the release of that is the last
 * access to the mutex, which another thread may destroy next.  And a try takes the ticket lock
 * alone, which does not belong to a thread: no lines are needed for a mutex without contention.
 * The papers' locks that waiters can leave (A-C-BO-CLH) are not here.
 */
#include "zoo/zoo.h"

/* In a row on one node; the papers' bound. */
#define HAND_OVERS 64u

/* Of a node's queue; a line, which the mutex keeps until it is destroyed. */
struct cohort { /* in the place of a zoo_node */
	struct zoo_node *tail;
	struct cohort *next; /* another node's */
	uint32_t numa_node;
	uint32_t hand_overs; /* in a row; of the owner */
};
_Static_assert(sizeof(struct cohort) <= sizeof(struct zoo_node), "in the place of one");

/* What a waiter is told: it is the head of the queue, and has the ticket lock, or not. */
enum { WAITING, GRANTED, HEAD };

/* ---- the ticket lock ---- */

static uint32_t *next_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static uint32_t *called_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static void draw_and_wait(struct zoo_mutex *m)
{
	uint32_t mine = fg_add_relaxed(next_of(m), 1);

	while (fg_load_acquire(called_of(m)) != mine) /* pairs with call_next() */
		zoo_pause();
}

/* Release: the next owner sees what was done in the section. */
static void call_next(struct zoo_mutex *m)
{
	fg_store_release(called_of(m), fg_load_relaxed(called_of(m)) + 1);
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t called = fg_load_acquire(called_of(m)); /* pairs with call_next() */

	if (fg_load_relaxed(next_of(m)) != called ||
	    !fg_cas_acquire(next_of(m), &called, called + 1))
		return false;
	m->node = NULL; /* in no queue */
	return true;
}

/* ---- the queues ---- */

static struct cohort **first_of(struct zoo_mutex *m)
{
	return (struct cohort **)&m->s.p[1];
}

static struct cohort *cohort_of(struct zoo_mutex *m, uint32_t numa_node)
{
	struct cohort *first = fg_load_acquire(first_of(m)), *c, *fresh = NULL;

	for (;;) {
		for (c = first; c && c->numa_node != numa_node; c = c->next)
			;
		if (c)
			break;
		if (!fresh)
			fresh = (struct cohort *)zoo_node_get();
		*fresh = (struct cohort){.next = first, .numa_node = numa_node};
		/* Release: a thread that finds it finds it empty; if it fails, look again. */
		if (__atomic_compare_exchange_n(first_of(m), &first, fresh, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return fresh;
	}
	if (fresh)
		zoo_node_put((struct zoo_node *)fresh);
	return c;
}

static void end(struct zoo_mutex *m)
{
	for (struct cohort *c = *first_of(m), *next; c; c = next) {
		next = c->next;
		zoo_node_put((struct zoo_node *)c);
	}
	*first_of(m) = NULL;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct cohort *c = cohort_of(m, zoo_numa_node());
	struct zoo_node *me = zoo_node_get(), *before;
	uint32_t status = HEAD;

	(void)deadline; /* a ticket cannot be given back */
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, WAITING);
	me->other = (struct zoo_node *)c; /* another thread may unlock, and I may move */
	before = __atomic_exchange_n(&c->tail, me, __ATOMIC_ACQ_REL);
	if (before) {
		fg_store_release(&before->next, me);
		while ((status = fg_load_acquire(&me->status)) == WAITING)
			zoo_pause();
	}
	if (status == HEAD) {
		draw_and_wait(m);
		c->hand_overs = 0;
	}
	m->node = me;
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *next;
	struct cohort *c;

	if (!me) { /* from trylock() */
		call_next(m);
		return;
	}
	c = (struct cohort *)me->other;
	if (c->hand_overs < HAND_OVERS && (next = fg_load_acquire(&me->next))) {
		c->hand_overs++;
		fg_store_release(&next->status, GRANTED);
		zoo_node_put(me);
		return;
	}
	next = zoo_node_behind(&c->tail, me);
	if (next)
#ifdef FG_BROKEN_ZOO /* a test notices that it goes in without a ticket */
		fg_store_release(&next->status, GRANTED);
#else
		fg_store_release(&next->status, HEAD);
#endif
	zoo_node_put(me);
	call_next(m);
}

const struct zoo_lock zoo_cohort = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .start = zoo_numa_start, .end = end};
