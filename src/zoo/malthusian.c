/* SPDX-License-Identifier: MIT */
/*
 * The Malthusian lock: an MCS queue from which the owner takes waiters that are more than needed,
 * and puts them aside, last in, first out; they come back when the queue is empty, and now and
 * then the one that waits longest.  Dice, "Malthusian Locks", EuroSys 2017, section 4 (MCSCR).
 *
 * Waiters spin for a while on their own node and then sleep on it.
 */
#include "zoo/park.h"

/* One release in so many serves the one that was put aside first (section 4). */
#define FAIR_EVERY 1000u

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[0];
}

/* Guarded by the lock. */
static struct zoo_node **aside_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[1];
}

static bool trylock(struct zoo_mutex *m)
{
	struct zoo_node *me = zoo_queue_try(tail_of(m), ZOO_GRANTED);

	if (!me)
		return false;
	m->node = me;
	return true;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me = zoo_node_get(), *before;

	(void)deadline;
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, ZOO_WAITING);
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before) {
		fg_store_release(&before->next, me);
		zoo_wait_for_grant(me);
	}
	m->node = me;
	return true;
}

static struct zoo_node *linked(struct zoo_node *node)
{
	struct zoo_node *next;

	while (!(next = fg_load_acquire(&node->next)))
		zoo_pause();
	return next;
}

/* The one put aside last, or first. */
static struct zoo_node *take_back(struct zoo_mutex *m, bool oldest)
{
	struct zoo_node **at = aside_of(m), *n;

	while (oldest && (*at)->other)
		at = &(*at)->other;
	n = *at;
	*at = n->other;
	return n;
}

/* `n` takes over, before the waiters of the queue; `me` is the owner's node. */
static void insert(struct zoo_mutex *m, struct zoo_node *me, struct zoo_node *n)
{
	struct zoo_node *expected = me;

	fg_store_relaxed(&n->next, NULL);
	if (fg_load_acquire(&me->next) ||
	    !__atomic_compare_exchange_n(tail_of(m), &expected, n, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		fg_store_relaxed(&n->next, linked(me));
}

static void unlock(struct zoo_mutex *m)
{
	static __thread uint32_t releases;
	struct zoo_node *me = m->node, *expected = me, *next = fg_load_acquire(&me->next), *after;

	if (*aside_of(m) && (!next || ++releases % FAIR_EVERY == 0)) {
		after = take_back(m, next != NULL);
		insert(m, me, after);
		next = after;
	} else if (!next) {
		if (__atomic_compare_exchange_n(tail_of(m), &expected, NULL, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			zoo_node_put(me);
			return;
		}
		next = linked(me);
	} else if ((after = fg_load_acquire(&next->next))) {
		next->other = *aside_of(m); /* two wait: one is enough */
		*aside_of(m) = next;
		next = after;
	}
	zoo_grant(next);
	zoo_node_put(me);
}

const struct zoo_lock zoo_malthusian = {.lock = lock, .trylock = trylock, .unlock = unlock};
