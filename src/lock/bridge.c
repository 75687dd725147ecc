/* SPDX-License-Identifier: MIT */
#include "lock/bridge.h"

#include <pthread.h>

#include "lock/epoch.h"
#include "sys/cleanup.h"
#include "sys/libc.h"

#define PAGE 4096u /* the smallest */

static void renew(void *bridges)
{
	struct fg_bridges *b = bridges;

	b->renew(b);
}

/*
 * By its place in the page alone: a process may have the object mapped at several addresses (POSIX,
 * "Synchronization Object Copies and Alternative Mappings").
 */
static uint32_t index_of(const struct fg_bridges *b, const void *object)
{
	return ((uintptr_t)object % PAGE >> b->shift) % b->count;
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
	bool let_go; /* of the mutex */
};

/* At the end, and where it is cancelled.  First the bridge: nobody waits for a mutex with it. */
static void leave(void *arg)
{
	struct wait *w = arg;

	w->all->unlock(w->bridge);
	fg_add_relaxed(w->waits, -1u);
	if (w->let_go)
		_fg_cond_take_back(w->mutex);
}

static int wait_with(struct wait *w, int (*wait)(void *bridge, void *arg), void *arg)
{
	int r = _fg_cond_let_go(w->mutex);

	if (r)
		return r;
	fg_store_relaxed(&w->let_go, true);
	return wait(w->bridge, arg);
}

int _fg_bridge_wait(struct fg_bridges *b, const void *object, const struct fg_cond_mutex *m,
		    int (*wait)(void *bridge, void *arg), void *arg)
{
	uint32_t i = index_of(b, object);
	struct wait w = {b, bridge_at(b, i), &b->waits[i], m, false};
	int type, r;

	/* Asynchronously it is cancelled in libc's wait, and at the end. */
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_DEFERRED, &type);
	fg_add_relaxed(w.waits, 1);
	b->lock(w.bridge);
	fg_cleanup_push(leave, &w);
	r = wait_with(&w, wait, arg);
	fg_cleanup_pop(1);
	if (fg_unlikely(type != PTHREAD_CANCEL_DEFERRED))
		fg_libc_pthread_setcanceltype()(type, NULL);
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
