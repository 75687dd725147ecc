/* SPDX-License-Identifier: MIT */
/*
 * u-SCL, the scheduler-cooperative lock: a thread has the lock for a slice of 2 ms, in which it may
 * take and release it at will and nobody else may; then the next in the queue has one.  A thread
 * that has used its slice up stays away until its share of the time, by its nice value, is right
 * again.  Patel, Yang, Arulraj, Arpaci-Dusseau, Arpaci-Dusseau, Swift, "Avoiding Scheduler
 * Subversion using Scheduler-Cooperative Locks", EuroSys 2020, sections 4 and 5.2.
 *
 * The lock idles while the owner of a slice has no use for it, in the paper until the slice is
 * over, here for IDLE_NS: a program whose threads hand over with a condition would otherwise do so
 * every 2 ms.  A lock needs more than 16 bytes and has a block of its own; a thread's account of a
 * lock stands in a table of the thread, from which the one in the way is forgotten when the table
 * is full there.  Ours: a thread that has ended counts among the others for up to ACTIVE_NS, so
 * that nobody stays away for longer than AWAY_NS.
 */
#include <sys/resource.h>

#include "zoo/park.h"

/* The slice is the paper's; the others were not varied. */
#define SLICE_NS       2000000u
#define IDLE_NS	       100000u
#define SLICE_SLEEP_NS 50000u
#define ACTIVE_NS      1000000000u /* a thread that has not used it for so long has no share */
#define AWAY_NS	       (100 * SLICE_NS)
#define ACCOUNTS       64u
#define PROBES	       4u

struct block { /* in a zoo_node */
	struct zoo_node *tail;
	uint32_t held;
	uint32_t owner; /* of the slice */
	uint64_t slice_end;
	uint64_t taken, released; /* when the last section began and ended */
	uint64_t weights;	  /* of all threads that have used the lock since: */
	uint64_t since_ns;
	uint64_t number; /* of all blocks ever: one that is used again is another lock */
};
_Static_assert(sizeof(struct block) <= sizeof(struct zoo_node), "in the place of one");

struct account {
	const struct block *lock;
	uint64_t number;
	uint64_t begun, used; /* its last slice */
	uint64_t away_until, weight;
	uint64_t counted_ns; /* in the weights since then */
};

static struct block *block_of(struct zoo_mutex *m)
{
	struct block *b = __atomic_load_n(&m->s.p[0], __ATOMIC_ACQUIRE), *fresh;
	static uint64_t numbers;
	void *none = NULL;

	if (fg_likely(b != NULL))
		return b;
	fresh = (struct block *)zoo_node_get();
	*fresh = (struct block){.number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED)};
	if (__atomic_compare_exchange_n(&m->s.p[0], &none, fresh, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	zoo_node_put((struct zoo_node *)fresh);
	return none;
}

/* CFS's weights: 1024 for nice 0, a quarter more for each step. */
static uint64_t weight_of_thread(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);
	uint64_t weight = 1024;

	for (; nice < 0; nice++)
		weight += weight / 4;
	for (; nice > 0; nice--)
		weight -= weight / 5;
	return weight;
}

static struct account *account_of(struct block *b)
{
	static __thread struct account accounts[ACCOUNTS];
	uint32_t hash = (uint32_t)(((uintptr_t)b >> 6) * 2654435761u) >> 16, i;
	struct account *a;

	for (i = 0; i < PROBES; i++) {
		a = &accounts[(hash + i) % ACCOUNTS];
		if (fg_likely(a->lock == b && a->number == b->number))
			return a;
		if (!a->lock || a->lock == b)
			break;
	}
	*a = (struct account){.lock = b, .number = b->number, .weight = weight_of_thread()};
	return a;
}

/* Holding the lock. */
static void count_weight(struct block *b, struct account *a)
{
	if (b->taken - b->since_ns > ACTIVE_NS) {
		b->since_ns = b->taken;
		b->weights = 0;
	}
	if (a->counted_ns != b->since_ns) {
		a->counted_ns = b->since_ns;
		b->weights += a->weight;
	}
}

static bool take(struct block *b)
{
	uint32_t none = 0;

	if (fg_load_relaxed(&b->held) || !fg_cas_acquire(&b->held, &none, 1))
		return false;
	b->taken = fg_now_ns();
	return true;
}

static bool my_slice(const struct block *b, uint64_t now)
{
	return fg_load_relaxed(&b->owner) == zoo_tid() && now < fg_load_relaxed(&b->slice_end);
}

static bool slice_is_over(const struct block *b, uint64_t now)
{
	return now >= fg_load_relaxed(&b->slice_end) ||
	       (!fg_load_relaxed(&b->held) &&
		(int64_t)(now - fg_load_relaxed(&b->released)) > IDLE_NS);
}

/* Holding it; the slice of the one before is over. */
static void begin_slice(struct block *b)
{
	fg_store_relaxed(&b->owner, zoo_tid());
	fg_store_relaxed(&b->slice_end, b->taken + SLICE_NS);
}

/* What it used in its last slice, of the time since: no more than its share by weight. */
static void settle(const struct block *b, struct account *a)
{
	uint64_t away = a->used * fg_load_relaxed(&b->weights) / a->weight;

	if (!a->used)
		return;
	a->away_until = a->begun + (away < AWAY_NS ? away : AWAY_NS);
	a->used = 0;
}

static void sleep_up_to(uint64_t ns)
{
	zoo_sleep_ns(ns < SLICE_SLEEP_NS ? ns : SLICE_SLEEP_NS);
}

/* POSIX: a free lock is taken, whichever thread has the slice; it is put to the account. */
static bool trylock(struct zoo_mutex *m)
{
	return take(block_of(m));
}

/* In one's own slice at once; nobody in the queue is passed. */
static bool first(struct zoo_mutex *m)
{
	struct block *b = block_of(m);

	return my_slice(b, fg_now_ns()) && take(b);
}

static void wait_for_turn(struct block *b, struct zoo_node *me)
{
	struct zoo_node *before = __atomic_exchange_n(&b->tail, me, __ATOMIC_ACQ_REL);

	if (!before)
		return;
	fg_store_release(&before->next, me);
	zoo_wait_for_grant(me);
}

static void leave_queue(struct block *b, struct zoo_node *me)
{
	struct zoo_node *expected = me, *next = fg_load_acquire(&me->next);

	if (!next && __atomic_compare_exchange_n(&b->tail, &expected, NULL, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED)) {
		zoo_node_put(me);
		return;
	}
	while (!(next = fg_load_acquire(&me->next)))
		zoo_pause();
	zoo_grant(next);
	zoo_node_put(me);
}

static bool lock(struct zoo_mutex *m, const struct fg_deadline *deadline)
{
	struct block *b = block_of(m);
	struct account *a = account_of(b);
	struct zoo_node *me;
	uint64_t now;

	(void)deadline;
	if (!my_slice(b, fg_now_ns()))
		settle(b, a);
	while ((now = fg_now_ns()) < a->away_until && !my_slice(b, now))
		sleep_up_to(a->away_until - now);
	me = zoo_node_get();
	fg_store_relaxed(&me->next, NULL);
	fg_store_relaxed(&me->status, ZOO_WAITING);
	wait_for_turn(b, me);
	/* The head, alone but for the owner of the slice. */
	for (;;) {
		now = fg_now_ns();
		if ((slice_is_over(b, now) || my_slice(b, now)) && take(b)) {
			if (!my_slice(b, b->taken))
				begin_slice(b);
			break;
		}
		if (now + zoo_spin_ns() < fg_load_relaxed(&b->slice_end))
			sleep_up_to(b->slice_end - now);
		else
			zoo_yield();
	}
	leave_queue(b, me);
	return true;
}

static void unlock(struct zoo_mutex *m)
{
	struct block *b = m->s.p[0];
	struct account *a = account_of(b);
	uint64_t now = fg_now_ns();

	count_weight(b, a);
	if (!a->used)
		a->begun = b->taken;
	a->used += now - b->taken;
	fg_store_relaxed(&b->released, now);
	fg_store_release(&b->held, 0);
}

static void end(struct zoo_mutex *m)
{
	if (m->s.p[0])
		zoo_node_put(m->s.p[0]);
	m->s.p[0] = NULL;
}

const struct zoo_lock zoo_uscl = {
    .lock = lock, .trylock = trylock, .unlock = unlock, .first = first, .end = end};
