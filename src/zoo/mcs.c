/* SPDX-License-Identifier: MIT */
/*
 * The MCS lock: a queue in which each waiter spins on its own line.  Mellor-Crummey, Scott,
 * TOCS 9(1), 1991, algorithm 5.
 */
#include "zoo/zoo.h"

enum { WAITING, GRANTED };

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[0];
}

static bool trylock(struct zoo_mutex *m)
{
	struct zoo_node *me = zoo_queue_try(tail_of(m), GRANTED);

	if (!me)
		return false;
	m->node = me;
	return true;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me = zoo_node_get(), *before;

	(void)deadline;
	me->next = NULL;
	me->status = WAITING;
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before) {
		fg_store_release(&before->next, me);
		while (fg_load_acquire(&me->status) == WAITING)
			zoo_pause();
	}
	m->node = me;
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *next = zoo_node_behind(tail_of(m), me);

	if (next)
		fg_store_release(&next->status, GRANTED);
	zoo_node_put(me);
}

const struct zoo_lock zoo_mcs = {.lock = lock, .trylock = trylock, .unlock = unlock};
