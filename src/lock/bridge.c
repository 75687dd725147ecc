/* SPDX-License-Identifier: MIT */
#include "lock/bridge.h"

#include <pthread.h>

#include "lock/epoch.h"

static void renew(void *bridges)
{
	struct fg_bridges *b = bridges;

	b->renew(b);
}

static void *bridge_of(struct fg_bridges *b, const void *object)
{
	if (fg_unlikely(fg_load_acquire(&b->epoch) != fg_epoch))
		_fg_enter_epoch(&b->epoch, renew, b);
	return (char *)b->table + ((uintptr_t)object >> b->shift) % b->count * b->size;
}

/* A wait that has the bridge. */
struct wait {
	struct fg_bridges *all;
	void *bridge;
	const struct fg_cond_mutex *mutex;
};

/* At the end, and where it is cancelled.  First the bridge: nobody waits for a mutex with it. */
static void leave(void *arg)
{
	struct wait *w = arg;

	w->all->unlock(w->bridge);
	_fg_cond_take_back(w->mutex);
}

int _fg_bridge_wait(struct fg_bridges *b, const void *object, const struct fg_cond_mutex *m,
		    int (*wait)(void *bridge, void *arg), void *arg)
{
	struct wait w = {b, bridge_of(b, object), m};
	int r;

	b->lock(w.bridge);
	r = _fg_cond_let_go(m);
	if (r) {
		b->unlock(w.bridge);
		return r;
	}
	pthread_cleanup_push(leave, &w);
	r = wait(w.bridge, arg);
	pthread_cleanup_pop(1);
	return r;
}

int _fg_bridge_wake(struct fg_bridges *b, void *object, int (*wake)(void *object))
{
	void *bridge = bridge_of(b, object);
	int r;

	b->lock(bridge);
	r = wake(object);
	b->unlock(bridge);
	return r;
}
