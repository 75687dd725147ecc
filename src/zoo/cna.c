/* SPDX-License-Identifier: MIT */
/*
 * The compact NUMA-aware lock: an MCS queue in one word.  The owner hands over to the first waiter
 * of its own NUMA node; the waiters before that one go to a second queue, which is handed over with
 * the lock in the nodes, and comes back into the first when nobody of this node waits, or at one
 * release of many.  Dice, Kogan, "Compact NUMA-Aware Locks", EuroSys 2019, section 5, without the
 * optional changes of section 6.
 */
#include "zoo/zoo.h"

/* One release in so many lets the second queue have its turn; the paper's (section 5). */
#define FAIR_EVERY 65536u

#define NOT_ASKED ~0u /* the first of a queue needs to know its NUMA node only if others come */

enum { WAITING, GRANTED };

/*
 * `other` is, in the owner's node, the first of the second queue; in that one's, the last.
 * `extra[0]` is the NUMA node.  A waiter does not look at either.
 */
static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[0];
}

static bool trylock(struct zoo_mutex *m)
{
	struct zoo_node *me = zoo_queue_try(tail_of(m), GRANTED);

	if (!me)
		return false;
	me->other = NULL;
	me->extra[0] = NOT_ASKED;
	m->node = me;
	return true;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me = zoo_node_get(), *before;

	(void)deadline;
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, WAITING);
	me->other = NULL;
	me->extra[0] = NOT_ASKED;
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before) {
		me->extra[0] = zoo_numa_node();
		fg_store_release(&before->next, me); /* pairs with those that follow the links */
		while (fg_load_acquire(&me->status) == WAITING)
			zoo_pause();
	}
	m->node = me;
	return true;
}

/* With the second queue.  Release: what was done in the section, and in the queues. */
static void grant(struct zoo_node *n, struct zoo_node *second)
{
	n->other = second;
	fg_store_release(&n->status, GRANTED);
}

static bool is_time_for_others(void)
{
	static __thread uint32_t random;

	if (fg_unlikely(!random))
		random = zoo_tid();
	random ^= random << 13; /* Marsaglia, "Xorshift RNGs", JSS 8(14), 2003 */
	random ^= random >> 17;
	random ^= random << 5;
	return random % FAIR_EVERY == 0;
}

/*
 * The first waiter of my NUMA node, behind those that go to the second queue; NULL: there is none,
 * and all stay where they are.  The last of the queue is never moved: somebody may be about to link
 * itself to it.
 */
static struct zoo_node *first_of_my_node(struct zoo_node *me, struct zoo_node *first)
{
	uint32_t mine = me->extra[0] == NOT_ASKED ? zoo_numa_node() : me->extra[0];
	struct zoo_node *last, *n;

	if (first->extra[0] == mine)
		return first;
	for (last = first; (n = fg_load_acquire(&last->next)); last = n)
		if (n->extra[0] == mine)
			break;
	if (!n)
		return NULL;
	fg_store_relaxed(&last->next, NULL);
	if (me->other)
		fg_store_relaxed(&me->other->other->next, first);
	else
		me->other = first;
	me->other->other = last;
	return n;
}

static void unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *next = fg_load_acquire(&me->next), *second = me->other,
			*expected = me, *n;

	if (!next) {
		/* The second queue becomes the first, or the lock is free. */
		if (__atomic_compare_exchange_n(tail_of(m), &expected,
						second ? second->other : NULL, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
#ifndef FG_BROKEN_ZOO /* a test notices that they are forgotten */
			if (second)
				grant(second, NULL);
#endif
			zoo_node_put(me);
			return;
		}
		while (!(next = fg_load_acquire(&me->next)))
			zoo_pause(); /* it is in the queue, and about to link itself */
	}
	if (!is_time_for_others() && (n = first_of_my_node(me, next))) {
		grant(n, me->other);
	} else if (second) { /* before the first; its owners' stores to the links are mine by now */
		fg_store_release(&second->other->next, next);
		grant(second, NULL);
	} else {
		grant(next, NULL);
	}
	zoo_node_put(me);
}

const struct zoo_lock zoo_cna = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .start = zoo_numa_start};
