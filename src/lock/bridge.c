/* SPDX-License-Identifier: MIT */
#include "lock/bridge.h"

#include <pthread.h>

#include "lock/epoch.h"

#define PAGE_BITS 12 /* of the smallest pages */

static void renew(void *bridges)
{
	struct fg_bridges *b = bridges;

	b->renew(b);
}

/* Objects at the same place in several pages are as likely as neighbours in one. */
static uint32_t index_of(const struct fg_bridges *b, const void *object)
{
	uintptr_t address = (uintptr_t)object;

	return (address >> b->shift ^ address >> PAGE_BITS) % b->count;
}

static void *bridge_at(struct fg_bridges *b, uint32_t index)
{
	if (fg_unlikely(fg_load_acquire(&b->epoch) != fg_epoch))
		_fg_enter_epoch(&b->epoch, renew, b);
	return (char *)b->table + index * b->size;
}

/* A wait that has the bridge. */
struct wait {
	struct fg_bridges *all;
	void *bridge;
	uint32_t *waits;
	const struct fg_cond_mutex *mutex;
};

/* At the end, and where it is cancelled.  First the bridge: nobody waits for a mutex with it. */
static void leave(void *arg)
{
	struct wait *w = arg;

	w->all->unlock(w->bridge);
	fg_add_relaxed(w->waits, -1u);
	_fg_cond_take_back(w->mutex);
}

int _fg_bridge_wait(struct fg_bridges *b, const void *object, const struct fg_cond_mutex *m,
		    int (*wait)(void *bridge, void *arg), void *arg)
{
	uint32_t i = index_of(b, object);
	struct wait w = {b, bridge_at(b, i), &b->waits[i], m};
	int r;

	fg_add_relaxed(w.waits, 1);
	b->lock(w.bridge);
	r = _fg_cond_let_go(m);
	if (r) {
		b->unlock(w.bridge);
		fg_add_relaxed(w.waits, -1u);
		return r;
	}
	pthread_cleanup_push(leave, &w);
	r = wait(w.bridge, arg);
	pthread_cleanup_pop(1);
	return r;
}

/*
 * A signal has to reach a waiter if it comes after the signaller, or whoever told it, had the mutex
 * that the waiter had released.  Then the waiter's count and its lock of the bridge both happen
 * before this: the count, relaxed as it is, is not missed, as it goes down only at the wait's end,
 * and the bridge is had after the waiter, which sleeps by then as far as libc is concerned.
 * Whoever has nothing from the mutex may be early, and would be with libc alone.
 */
int _fg_bridge_wake(struct fg_bridges *b, void *object, int (*wake)(void *object))
{
	uint32_t i = index_of(b, object);
	void *bridge;

	if (fg_load_relaxed(&b->waits[i])) {
		bridge = bridge_at(b, i);
		b->lock(bridge);
		b->unlock(bridge);
	}
	return wake(object);
}
