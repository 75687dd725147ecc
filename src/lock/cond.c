/* SPDX-License-Identifier: MIT */
#include "lock/cond.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "arch/arch.h"
#include "sys/count.h"

enum { WAITING = 0, SIGNALED = 1, LAST = 2, GONE = 3 };

_Static_assert(offsetof(struct fg_cond, flags) == 36, "glibc marks process-shared ones there");

#define EPOCH_RESETTING 0xffffffffu

/*
 * In the child of a fork: the lock may be held, and the list filled, by threads
 * that exist in the parent only.  Whoever comes first empties both.
 */
static void enter_epoch(struct fg_cond *c)
{
	uint32_t epoch = fg_load_acquire(&c->epoch);

	while (epoch != fg_epoch) {
		if (epoch != EPOCH_RESETTING && fg_cas_acquire(&c->epoch, &epoch, EPOCH_RESETTING)) {
			c->lock = (struct fg_lock){ 0 };
			c->first = c->last = NULL;
			fg_store_release(&c->epoch, fg_epoch); /* pairs with the acquire above */
			return;
		}
		fg_pause();
		epoch = fg_load_acquire(&c->epoch);
	}
}

static void cond_lock(struct fg_cond *c)
{
	if (fg_unlikely(fg_load_acquire(&c->epoch) != fg_epoch))
		enter_epoch(c);
	fg_lock(&c->lock);
}

static void list_append(struct fg_cond *c, struct fg_waiter *n)
{
	n->next = NULL;
	n->prev = c->last;
	if (c->last)
		c->last->next = n;
	else
		fg_store_relaxed(&c->first, n);
	c->last = n;
}

static void list_remove(struct fg_cond *c, struct fg_waiter *prev, struct fg_waiter *next)
{
	if (prev)
		prev->next = next;
	else
		fg_store_relaxed(&c->first, next);
	if (next)
		next->prev = prev;
	else
		c->last = prev;
}

/*
 * Takes out the first waiter that still waits and gives it the signal.  Those
 * that go by themselves stay until they take themselves out.
 */
static struct fg_waiter *signal_first(struct fg_cond *c, bool broadcast)
{
	struct fg_waiter *n, *next;

	for (n = c->first; n; n = next) {
		struct fg_waiter *prev = n->prev;
		bool last = broadcast || c->first == c->last;
		uint32_t waiting = WAITING;

		next = n->next;
		if (!last)
			fg_add_relaxed(&c->lock.tag, 1);
		/* Release: the waiter sees all that we did.  After it, its stack may be gone. */
		if (fg_cas_release(&n->word, &waiting, last ? LAST : SIGNALED)) {
			list_remove(c, prev, next);
			return n;
		}
		if (!last)
			fg_add_relaxed(&c->lock.tag, -1u);
	}
	return NULL;
}

/* No waiter, no lock: one that the caller can know of appended itself before it released its mutex. */
static bool nobody_waits(const struct fg_cond *c)
{
	return !fg_load_relaxed(&c->first);
}

void fg_cond_signal(struct fg_cond *c)
{
	struct fg_waiter *n;

	if (nobody_waits(c))
		return;
	cond_lock(c);
	n = signal_first(c, false);
	fg_unlock(&c->lock);
	if (n)
		fg_futex_wake(&n->word, 1, FG_FUTEX_ANY); /* an address; the waiter may have returned */
}

void fg_cond_broadcast(struct fg_cond *c)
{
	struct fg_waiter *n;

	if (nobody_waits(c))
		return;
	cond_lock(c);
	while ((n = signal_first(c, true)))
		fg_futex_wake(&n->word, 1, FG_FUTEX_ANY);
	fg_unlock(&c->lock);
}

struct wait {
	struct fg_cond *cond;
	const struct fg_cond_mutex *mutex;
	struct fg_waiter node;
};

/* The waiter ends the wait by itself.  False: too late, it has been signalled. */
static bool go(struct wait *w)
{
	uint32_t waiting = WAITING;

	if (!fg_cas_acquire(&w->node.word, &waiting, GONE))
		return false;
	cond_lock(w->cond);
	list_remove(w->cond, w->node.prev, w->node.next);
	fg_unlock(&w->cond->lock);
	return true;
}

/* Signalled: the last touch of the condition variable, if one is due at all (release: see destroy). */
static void confirm(struct wait *w)
{
	if (fg_load_acquire(&w->node.word) == SIGNALED)
		__atomic_fetch_sub(&w->cond->lock.tag, 1, __ATOMIC_RELEASE);
}

/* POSIX: a thread that is cancelled, or that fails, consumes no signal that others wait for. */
static void pass_on(struct wait *w)
{
	if (fg_load_acquire(&w->node.word) == SIGNALED)
		fg_cond_signal(w->cond);
	confirm(w);
}

static void cancelled(void *arg)
{
	struct wait *w = arg;

	if (!go(w))
		pass_on(w);
	w->mutex->lock(w->mutex->mutex);
}

int fg_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m, const struct fg_deadline *deadline)
{
	struct wait w = { .cond = c, .mutex = m };
	int r, locked;

	cond_lock(c);
	list_append(c, &w.node);
	fg_unlock(&c->lock);
	r = m->unlock(m->mutex);
	if (r) {
		if (!go(&w))
			pass_on(&w);
		return r;
	}
	fg_count(fg_self(), FG_STAT_COND_WAITS, 1);

	pthread_cleanup_push(cancelled, &w);
	/* Acquire: pairs with the release in signal_first. */
	while (fg_load_acquire(&w.node.word) == WAITING) {
		r = fg_futex_wait_cancellable(&w.node.word, WAITING, deadline);
		if (r == -ETIMEDOUT && go(&w))
			break;
		r = 0;
	}
	pthread_cleanup_pop(0);

	if (r == 0)
		confirm(&w);
	locked = m->lock(m->mutex);
	if (locked)
		return locked;
	return r == -ETIMEDOUT ? ETIMEDOUT : 0;
}

void fg_cond_destroy(struct fg_cond *c)
{
	for (;;) {
			bool empty;

		cond_lock(c);
		/* Acquire: pairs with confirm(). */
		empty = !c->first && !fg_load_acquire(&c->lock.tag);
		fg_unlock(&c->lock);
		if (empty)
			return;
		/* A waiter is about to leave or to confirm, and nobody will tell us. */
		struct fg_deadline soon = { .clock = CLOCK_MONOTONIC };
		uint32_t never = 0;

		clock_gettime(CLOCK_MONOTONIC, &soon.at);
		soon.at.tv_nsec += 100000;
		if (soon.at.tv_nsec >= 1000000000) {
			soon.at.tv_nsec -= 1000000000;
			soon.at.tv_sec++;
		}
		fg_futex_wait(&never, 0, FG_FUTEX_ANY, &soon);
	}
}
