/* SPDX-License-Identifier: MIT */
/*
 * The time-published MCS lock: each waiter writes the time to its node now and then, and the
 * owner passes over those whose time is old: they are off their CPU.  A waiter that was passed over
 * queues again; one that is out of time leaves its node to the owner.  He, Scherer, Scott,
 * "Preemption Adaptivity in Time-Published Queue-Based Spin Locks", HiPC 2005, section 3.1.
 *
 * A waiter whose owner has had the lock for long yields: the owner may be off its CPU.
 */
#include "zoo/zoo.h"

enum { WAITING, GRANTED, PASSED_OVER, LEFT };

/* Not varied. */
#define STALE_NS     50000u   /* older: not on a CPU */
#define LONG_NS	     1000000u /* a section this long: the owner is off its CPU */
#define CLOCK_PAUSES 16	      /* between two looks at the clock */

static struct zoo_node **tail_of(struct zoo_mutex *m)
{
	return (struct zoo_node **)&m->s.p[0];
}

/* When the owner got it; for waiters that consider to yield. */
static uint64_t *since_of(struct zoo_mutex *m)
{
	return &m->s.u64[1];
}

static void acquired(struct zoo_mutex *m, struct zoo_node *me)
{
	m->node = me;
	fg_store_relaxed(since_of(m), fg_now_ns());
}

static bool trylock(struct zoo_mutex *m)
{
	struct zoo_node *me = zoo_queue_try(tail_of(m), GRANTED);

	if (!me)
		return false;
	acquired(m, me);
	return true;
}

/* Of a time that another thread has written, perhaps after I looked at the clock. */
static bool is_older_than(uint64_t ns, uint64_t time, uint64_t now)
{
	return (int64_t)(now - time) > (int64_t)ns;
}

static bool move(struct zoo_node *n, uint32_t to)
{
	uint32_t from = WAITING;

	return __atomic_compare_exchange_n(&n->status, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* GRANTED, PASSED_OVER, or LEFT: the deadline has passed. */
static uint32_t wait(struct zoo_mutex *m, struct zoo_node *me, const struct fg_deadline *deadline)
{
	uint32_t status, n = 0;
	uint64_t now;

	while ((status = fg_load_acquire(&me->status)) == WAITING) {
		zoo_pause();
		if (++n % CLOCK_PAUSES)
			continue;
		now = fg_now_ns();
		fg_store_relaxed(&me->time[0], now);
		if (deadline && fg_deadline_passed(deadline) && move(me, LEFT))
			return LEFT;
		if (n % (64 * CLOCK_PAUSES) == 0 &&
		    is_older_than(LONG_NS, fg_load_relaxed(since_of(m)), now)) {
			/* off its CPU, as far as the owner is concerned */
			fg_store_relaxed(&me->time[0], 0);
			zoo_yield();
			fg_store_relaxed(&me->time[0], fg_now_ns());
		}
	}
	return status;
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct zoo_node *me, *before;
	uint32_t status;

	do {
		me = zoo_node_get();
		fg_store_relaxed(&me->next, NULL);
		fg_store_relaxed(&me->status, WAITING);
		fg_store_relaxed(&me->time[0], fg_now_ns());
		before = __atomic_exchange_n(tail_of(m), me, __ATOMIC_ACQ_REL);
		if (!before)
			break;
		fg_store_release(&before->next, me);
		status = wait(m, me, deadline);
		if (status == LEFT)
			return false;
		if (status == PASSED_OVER)
			zoo_node_put(me);
	} while (status == PASSED_OVER);
	acquired(m, me);
	return true;
}

/*
 * The first that waits and is on a CPU gets it; if none is, the lock is free, and they queue again
 * when they come back.
 */
static void unlock(struct zoo_mutex *m)
{
	struct zoo_node *me = m->node, *n = me, *next;
	uint64_t now = fg_now_ns();

	for (next = zoo_node_behind(tail_of(m), n); next; next = zoo_node_behind(tail_of(m), n)) {
		/* Whatever is known of n is in `next`: give n back. */
		if (n != me && !move(n, PASSED_OVER))
			zoo_node_put(n);
		n = next;
		if (!is_older_than(STALE_NS, fg_load_relaxed(&n->time[0]), now) &&
		    move(n, GRANTED)) {
			zoo_node_put(me);
			return;
		}
	}
	/*
	 * The lock is free.  The last one may be told only now: nobody can link behind it any more.
	 */
	if (n != me && !move(n, PASSED_OVER))
		zoo_node_put(n);
	zoo_node_put(me);
}

const struct zoo_lock zoo_mcstp = {.lock = lock, .trylock = trylock, .unlock = unlock};
