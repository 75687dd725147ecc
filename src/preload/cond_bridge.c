/* SPDX-License-Identifier: MIT */
/* glibc's condition variables with mutexes of either kind (lock/bridge.h). */
#include "preload/cond_pshared.h"

#include <errno.h>

#include "lock/bridge.h"
#include "preload/preload.h"

#pragma GCC visibility pop /* nothing here is a pthread name */

#define BRIDGES 64u

static pthread_mutex_t natives[BRIDGES];

static void renew(struct fg_bridges *b)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	for (uint32_t i = 0; i < b->count; i++)
		natives[i] = fresh;
}

static struct fg_bridges bridges = {natives, sizeof(natives[0]), BRIDGES, renew, 0};

static pthread_mutex_t *bridge(const pthread_cond_t *cond)
{
	/* 64 neighbours, of 48 bytes each, have 64 bridges */
	return _fg_bridge_of(&bridges, cond, 4);
}

struct bridged {
	pthread_mutex_t *bridge, *mutex;
};

static void leave_bridge(void *arg)
{
	struct bridged *b = arg;

	fg_native_pthread_mutex_unlock()(b->bridge);
	pthread_mutex_lock(b->mutex);
	_fg_mutex_waiters(fg_mutex_of(b->mutex), -1u);
}

static int native_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		       const struct timespec *at)
{
	if (clock < 0)
		return at ? fg_native_pthread_cond_timedwait()(cond, mutex, at) :
			    fg_native_pthread_cond_wait()(cond, mutex);
	return fg_native_pthread_cond_clockwait()(cond, mutex, clock, at);
}

int fg_cond_bridge_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			const struct timespec *at)
{
	struct bridged b = {bridge(cond), mutex};
	int r;

	if (!_fg_mutex_is_ours(fg_mutex_of(mutex)))
		return native_wait(cond, mutex, clock, at);
	if (at && !fg_valid_timespec(at)) /* glibc would say so too late: with the mutex released */
		return EINVAL;
	fg_native_pthread_mutex_lock()(b.bridge);
	_fg_mutex_waiters(fg_mutex_of(mutex), 1);
	r = pthread_mutex_unlock(mutex);
	if (r) {
		_fg_mutex_waiters(fg_mutex_of(mutex), -1u);
		fg_native_pthread_mutex_unlock()(b.bridge);
		return r;
	}
	pthread_cleanup_push(leave_bridge, &b);
	r = native_wait(cond, b.bridge, clock, at);
	pthread_cleanup_pop(1);
	return r;
}

int fg_cond_bridge_wake(pthread_cond_t *cond, bool all)
{
	pthread_mutex_t *b = bridge(cond);
	int r;

	fg_native_pthread_mutex_lock()(b);
	r = all ? fg_native_pthread_cond_broadcast()(cond) : fg_native_pthread_cond_signal()(cond);
	fg_native_pthread_mutex_unlock()(b);
	return r;
}

int fg_cond_bridge_destroy(pthread_cond_t *cond)
{
	return fg_native_pthread_cond_destroy()(cond);
}
