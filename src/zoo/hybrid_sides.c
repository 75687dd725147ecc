/* SPDX-License-Identifier: MIT */
/* The locks that hybrid.c makes pairs of: futex, and compare-and-swap, MCS, ticket or CLH. */
#include <errno.h>

#include "runtime/thread.h"
#include "zoo/hybrid.h"

enum { WAITING = FG_MCS_WAITING, SLEEPING, GRANTED, LEFT }; /* a node's status */

/* Waiting for a node's status, when there is to be no spinning. */
static void sleep_for_status(uint32_t *status)
{
	uint32_t waiting = WAITING;

	if (fg_cas_acquire(status, &waiting, SLEEPING) || waiting == SLEEPING)
		zoo_park(status, SLEEPING);
}

static bool is_waiting(const struct zoo_node *n)
{
	return fg_load_acquire(&n->status) <= SLEEPING;
}

/* ---- the blocking side: a futex lock, as futex.c -------------------------------------- */

static uint32_t *word_of(struct zoo_mutex *m)
{
	return &m->s.u32[1];
}

static bool block_trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return fg_cas_acquire(word_of(m), &none, 1);
}

static bool block_lock(struct zoo_mutex *m, bool stay)
{
	if (block_trylock(m))
		return true;
	while (fg_xchg_acquire(word_of(m), 2)) {
		if (!stay)
			zoo_hybrid_switch_if_wanted(m);
		zoo_wait(m, word_of(m), 2, NULL);
	}
	return true;
}

static void block_unlock(struct zoo_mutex *m)
{
	bool shared = zoo_is_shared(m);

	if (__atomic_exchange_n(word_of(m), 0, __ATOMIC_RELEASE) == 2)
		zoo_wake(word_of(m), 1, shared);
}

const struct side zoo_block_side = {block_lock, block_trylock, block_unlock};

/* ---- compare-and-swap, as cas.c: a waiter is in no queue, and can go -------------------- */

/* Between two looks of a waiter that stays.  Not varied. */
#define STAY_SLEEP_NS 20000u

static bool cas_trylock(struct zoo_mutex *m)
{
	uint32_t none = 0;

	return fg_cas_acquire(&m->s.u32[2], &none, 1);
}

/* After a switch one waiter at a time stays: a release that woke it would not be a plain store. */
static bool cas_lock(struct zoo_mutex *m, bool stay)
{
	for (uint32_t n = 1; !cas_trylock(m); n++) {
		if (stay && n > ZOO_LOOK_EVERY) {
			zoo_sleep_ns(STAY_SLEEP_NS);
			continue;
		}
		zoo_pause();
		if (!stay && n % ZOO_LOOK_EVERY == 0)
			zoo_hybrid_switch_if_wanted(m);
		if (!stay && switched_away(m))
			return false;
	}
	return true;
}

static void cas_unlock(struct zoo_mutex *m)
{
	fg_store_release(&m->s.u32[2], 0);
}

const struct side zoo_cas_side = {cas_lock, cas_trylock, cas_unlock};

/* ---- MCS, which waiters may leave: the node stays, and the one that releases takes it out ---- */

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[1];
}

/* For the monitor's holder test (protocol.h). */
static void publish(struct zoo_mutex *m, struct zoo_node *me)
{
	struct fg_self *t = fg_self();

	fg_store_relaxed(&t->slot->node, (uint64_t)(uintptr_t)me);
	fg_store_relaxed(&t->slot->pending, (uint64_t)(uintptr_t)tail_of(m));
	fg_fence_local();
	fg_store_relaxed(&t->slot->role, FG_ROLE_MCS);
	fg_fence_local();
	me->tid = t->id;
}

static void withdraw(void)
{
	fg_set_role(fg_self(), FG_ROLE_NONE);
}

static bool move(struct zoo_node *n, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&n->status, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* False: it has left. */
static bool grant(struct zoo_node *n)
{
	while (is_waiting(n)) {
		if (move(n, WAITING, GRANTED))
			return true;
		if (move(n, SLEEPING, GRANTED)) {
			zoo_unpark(&n->status);
			return true;
		}
	}
	return false;
}

static bool mcs_trylock(struct zoo_mutex *m)
{
	struct zoo_node *me = zoo_queue_try(tail_of(m), GRANTED);

	if (!me)
		return false;
	publish(m, me);
	m->node = me;
	return true;
}

static bool mcs_lock(struct zoo_mutex *m, bool stay)
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, WAITING);
	publish(m, me);
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before)
		fg_store_release(&before->next, me);
	else
		fg_store_relaxed(&me->status, GRANTED);
	for (uint32_t n = 1; is_waiting(me); n++) {
		zoo_pause();
		if (!stay && n % ZOO_LOOK_EVERY == 0)
			zoo_hybrid_switch_if_wanted(m);
		if (!switched_away(m))
			continue;
		if (stay) {
			sleep_for_status(&me->status);
		} else if (move(me, WAITING, LEFT)) {
			withdraw();
			return false;
		}
	}
	m->node = me;
	return true;
}

static void mcs_unlock(struct zoo_mutex *m)
{
	struct zoo_node *n = m->node, *next;
	bool passed = false;

	withdraw();
	while (!passed && (next = zoo_node_behind(tail_of(m), n))) {
		zoo_node_put(n); /* mine, or of one that left */
		n = next;
		/* about to be: the monitor's answer is about it from now on */
		fg_store_relaxed(&m->holder, n->tid);
		passed = grant(n);
	}
	if (!passed)
		zoo_node_put(n);
}

const struct side zoo_mcs_side = {mcs_lock, mcs_trylock, mcs_unlock};

/* ---- ticket: a number cannot be given back ------------------------------------------- */

/*
 * The number called has a bit beside it: waiters sleep until another one is.  In one word, since
 * who has called the next one may look at the lock no more.
 */
#define SLEEPERS 1u
#define ONE	 2u

static uint32_t *next_of(struct zoo_mutex *m)
{
	return &m->s.u32[2];
}

static uint32_t *called_of(struct zoo_mutex *m)
{
	return &m->s.u32[3];
}

/*
 * Which thread has a number, for the one that calls it: a hint, and two may share an entry.  Not
 * varied.
 */
#define CALLERS 1024u
static uint32_t *caller_of(struct zoo_mutex *m, uint32_t number)
{
	static uint32_t ids[CALLERS];

	return &ids[((uintptr_t)m / sizeof(*m) * 31 + number / ONE) % CALLERS];
}

static bool ticket_trylock(struct zoo_mutex *m)
{
	/* pairs with ticket_unlock() */
	uint32_t called = fg_load_acquire(called_of(m)) & ~SLEEPERS;

	return fg_cas_acquire(next_of(m), &called, called + ONE);
}

/* Either the one that calls sees SLEEPERS, or the kernel sees another number called. */
static void sleep_for_number(struct zoo_mutex *m, uint32_t called)
{
	fg_or_relaxed(called_of(m), SLEEPERS);
	zoo_wait(m, called_of(m), called | SLEEPERS, NULL);
}

static bool ticket_lock(struct zoo_mutex *m, bool stay)
{
	uint32_t mine = fg_add_relaxed(next_of(m), ONE), called;

	fg_store_relaxed(caller_of(m, mine), fg_self()->id);
	for (uint32_t n = 1; (called = fg_load_acquire(called_of(m)) & ~SLEEPERS) != mine; n++) {
		zoo_pause();
		if (!stay && n % ZOO_LOOK_EVERY == 0)
			zoo_hybrid_switch_if_wanted(m);
		if (switched_away(m))
			sleep_for_number(m, called);
	}
	return true;
}

static void ticket_unlock(struct zoo_mutex *m)
{
	uint32_t next = (fg_load_relaxed(called_of(m)) & ~SLEEPERS) + ONE;
	bool shared = zoo_is_shared(m);

	if (fg_load_relaxed(next_of(m)) != next)
		fg_store_relaxed(&m->holder, fg_load_relaxed(caller_of(m, next)));
	/* All sleep on one word; whose turn it is not says so again. */
	if (__atomic_exchange_n(called_of(m), next, __ATOMIC_RELEASE) & SLEEPERS)
		zoo_wake(called_of(m), INT32_MAX, shared);
}

const struct side zoo_ticket_side = {ticket_lock, ticket_trylock, ticket_unlock};

/* ---- CLH, as clh.c: somebody waits on this waiter's node ---------------------------------- */

static void clh_enter(struct zoo_mutex *m, struct zoo_node *me, struct zoo_node *before)
{
	if (before)
		zoo_node_put(before);
	m->node = me;
}

static bool clh_trylock(struct zoo_mutex *m)
{
	struct zoo_node *none = NULL, *me;

	if (fg_load_relaxed(tail_of(m)))
		return false;
	me = zoo_node_get();
	fg_store_relaxed(&me->status, WAITING);
	fg_store_relaxed(&me->tid, 0);
	if (!__atomic_compare_exchange_n(tail_of(m), &none, me, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return false;
	}
	clh_enter(m, me, NULL);
	return true;
}

static bool clh_lock(struct zoo_mutex *m, bool stay)
{
	struct zoo_node *me = zoo_node_get(), *before;

	fg_store_relaxed(&me->status, WAITING);
	fg_store_relaxed(&me->tid, 0);
	before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
	if (before)
		fg_store_relaxed(&before->tid, fg_self()->id); /* the thread after its owner */
	for (uint32_t n = 1; before && is_waiting(before); n++) {
		zoo_pause();
		if (!stay && n % ZOO_LOOK_EVERY == 0)
			zoo_hybrid_switch_if_wanted(m);
		if (switched_away(m))
			sleep_for_status(&before->status);
	}
	clh_enter(m, me, before);
	return true;
}

static void clh_unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *expected = me;

	if (fg_load_relaxed(tail_of(m)) == me &&
	    __atomic_compare_exchange_n(tail_of(m), &expected, NULL, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return;
	}
	fg_store_relaxed(&m->holder, fg_load_relaxed(&me->tid));
	grant(me); /* to the one behind, which takes it */
}

const struct side zoo_clh_side = {clh_lock, clh_trylock, clh_unlock};
