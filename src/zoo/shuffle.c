/* SPDX-License-Identifier: MIT */
/*
 * The Shuffle lock, blocking: a word that may be stolen, and a queue whose head, while it waits,
 * moves waiters of its own NUMA node up behind it, and wakes the next one before its turn comes.
 * Kashyap, Calciu, Cheng, Min, Kim, "Scalable and Practical Locking with Shuffling", SOSP 2019,
 * sections 4.1 to 4.3.
 *
 * The head sets everybody's policy here; the paper hands the part of the shuffler on.  With it goes
 * how many of one node have come in a row, so that another node's turn comes.
 */
#include "zoo/park.h"

#define SHUFFLE_MAX 1024u /* of one node in a row, as in the paper */
/* looks of the head: the owner may be off its CPU, and nothing else tells; not varied */
#define YIELD_EVERY 4096u

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static uint32_t node_of(const struct zoo_node *n)
{
	return n->extra[0];
}

/* The waiters of its node that came before it in a row; the one before it sets it. */
static uint32_t *row_of(struct zoo_node *n)
{
	return &n->extra[1];
}

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[1];
}

static bool trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return !fg_load_relaxed(word_of(m)) && fg_cas_acquire(word_of(m), &none, 1);
}

/* Woken early, so that it runs when its turn comes. */
static void rouse(struct zoo_node *n)
{
	uint32_t parked = ZOO_PARKED;

	if (__atomic_compare_exchange_n(&n->status, &parked, ZOO_WAITING, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		zoo_unpark(&n->status);
}

/*
 * Only the head touches links behind it.  The last node it sees stays where it is, since a new one
 * may be linking there.
 */
static void shuffle(struct zoo_node *me)
{
	struct zoo_node *last = me, *before, *n, *next;
	uint32_t row = *row_of(me);

	next = fg_load_acquire(&me->next);
	if (next)
		rouse(next);
	for (before = me; row < SHUFFLE_MAX && (n = fg_load_acquire(&before->next));) {
		if (node_of(n) != node_of(me)) {
			before = n;
			continue;
		}
		if (before == last) { /* in place already */
			last = before = n;
			row++;
			continue;
		}
		next = fg_load_acquire(&n->next);
		if (!next)
			return;
		fg_store_relaxed(&before->next, next);
		fg_store_relaxed(&n->next, last->next);
		fg_store_release(&last->next, n);
		last = n;
		row++;
	}
}

static void hand_on(struct zoo_node *me, struct zoo_node *next)
{
	*row_of(next) = node_of(next) == node_of(me) ? *row_of(me) + 1 : 0;
	zoo_grant(next);
}

static void wait_for_turn(struct zoo_node *me)
{
	uint32_t status;

	while (!zoo_spin_for_grant(me)) {
		status = ZOO_WAITING;
		if (!__atomic_compare_exchange_n(&me->status, &status, ZOO_PARKED, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return; /* granted */
		while (fg_load_acquire(&me->status) == ZOO_PARKED)
			zoo_park(&me->status, ZOO_PARKED);
	}
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me = zoo_node_get(), *before, *expected = me, *next;
	uint32_t n;

	(void)deadline;
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, ZOO_WAITING);
	me->extra[0] = zoo_numa_node();
	*row_of(me) = 0;
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before) {
		fg_store_release(&before->next, me);
		wait_for_turn(me);
	}
	for (n = 0; !trylock(m); n++) {
		if (n % ZOO_LOOK_EVERY == 0)
			shuffle(me);
		zoo_pause();
		if (n % YIELD_EVERY == YIELD_EVERY - 1)
			fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	/* Out of the queue before the section begins: the release is one store. */
	if (fg_load_acquire(&me->next) ||
	    !__atomic_compare_exchange_n(tail_of(m), &expected, NULL, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		while (!(next = fg_load_acquire(&me->next)))
			zoo_pause();
		hand_on(me, next);
	}
	zoo_node_put(me);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	fg_store_release(word_of(m), 0);
}

const struct zoo_lock zoo_shuffle = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .start = zoo_numa_start};
