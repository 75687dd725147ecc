/* SPDX-License-Identifier: MIT */
/*
 * The CLH lock: each waiter spins on the node of the one before it, and takes that node away.
 * Craig, TR 93-02-02, University of Washington, 1993; Magnusson, Landin, Hagersten, IPPS 1994.
 *
 * A fresh lock has no node of a predecessor: NULL stands for one that is free.
 */
#include "zoo/zoo.h"

enum { FREE, HELD };

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[0];
}

/* The node that was before mine is mine to give away once its owner has left. */
static void enter(struct zoo_mutex *m, struct zoo_node *me, struct zoo_node *before)
{
	if (before)
		zoo_node_put(before);
	m->node = me;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me = zoo_node_get(), *before;

	(void)deadline;
	me->status = HELD;
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	while (before && fg_load_acquire(&before->status) == HELD)
		zoo_pause();
	enter(m, me, before);
	return true;
}

static bool trylock(struct zoo_mutex *m)
{
	struct zoo_node *before = fg_load_acquire(tail_of(m)), *me;

	if (before)
		return false; /* held, or released with its node still there: unlock() mends that */
	me = zoo_node_get();
	me->status = HELD;
	if (!__atomic_compare_exchange_n(tail_of(m), &before, me, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return false;
	}
	enter(m, me, NULL);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *expected = me;

	/*
	 * Nobody behind: back to NULL, so that trylock needs not look into a node which may be
	 * another's by then, and a lock that is destroyed keeps none.
	 */
	if (fg_load_relaxed(tail_of(m)) == me &&
	    __atomic_compare_exchange_n(tail_of(m), &expected, NULL, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return;
	}
	fg_store_release(&me->status, FREE); /* the one behind takes it */
}

const struct zoo_lock zoo_clh = {.lock = lock, .trylock = trylock, .unlock = unlock};
