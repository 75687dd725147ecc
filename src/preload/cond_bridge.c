/* SPDX-License-Identifier: MIT */
/* glibc's condition variables with mutexes of either kind (lock/bridge.h). */
#include "preload/cond_pshared.h"

#include <errno.h>
#include <stddef.h>

#include "lock/bridge.h"
#include "preload/preload.h"

#pragma GCC visibility pop /* nothing here is a pthread name */

/* 64 neighbours, of 48 bytes each in one page, have 64 bridges.  Not varied. */
#define BRIDGES	      64u
#define ADDRESS_SHIFT 4u

static pthread_mutex_t natives[BRIDGES];
static uint32_t waits[BRIDGES];

static void renew(struct fg_bridges *b)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	for (uint32_t i = 0; i < b->count; i++)
		natives[i] = fresh;
}

static int lock_bridge(void *bridge)
{
	return fg_native_pthread_mutex_lock()(bridge);
}

static int unlock_bridge(void *bridge)
{
	return fg_native_pthread_mutex_unlock()(bridge);
}

static struct fg_bridges bridges = {.table = natives,
				    .waits = waits,
				    .size = sizeof(natives[0]),
				    .count = BRIDGES,
				    .shift = ADDRESS_SHIFT,
				    .lock = lock_bridge,
				    .unlock = unlock_bridge,
				    .renew = renew};

/* ---- whose it is --------------------------------------------------------------- */

uint32_t fg_cond_flags_at = offsetof(pthread_cond_t, __data.__wrefs);

bool fg_cond_find_flags(const pthread_cond_t *cond)
{
	static const uint8_t places[] = {FG_COND_FLAGS_AT, offsetof(struct fg_cond, flags)};

	/* All else is 0 in a new one. */
	for (size_t i = 0; i < sizeof(places); i++)
		if (*(const uint32_t *)((const char *)cond + places[i]) & FG_COND_SHARED) {
			fg_store_relaxed(&fg_cond_flags_at, places[i]);
			return true;
		}
	return false;
}

__attribute__((constructor)) static void find_flags(void)
{
	pthread_condattr_t attr;
	pthread_cond_t cond;

	pthread_condattr_init(&attr);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!fg_native_pthread_cond_init()(&cond, &attr)) {
		fg_cond_find_flags(&cond);
		fg_native_pthread_cond_destroy()(&cond);
	}
	pthread_condattr_destroy(&attr);
}

/* ---- waits --------------------------------------------------------------------- */

struct native_wait {
	pthread_cond_t *cond;
	clockid_t clock;
	const struct timespec *at;
};

static int native_wait(void *mutex, void *arg)
{
	const struct native_wait *w = arg;

	if (w->clock < 0)
		return w->at ? fg_native_pthread_cond_timedwait()(w->cond, mutex, w->at) :
			       fg_native_pthread_cond_wait()(w->cond, mutex);
	return fg_native_pthread_cond_clockwait()(w->cond, mutex, w->clock, w->at);
}

int fg_cond_bridge_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			const struct timespec *at)
{
	struct native_wait w = {cond, clock, at};
	struct fg_cond_mutex m;

	if (!_fg_mutex_is_ours(fg_mutex_of(mutex)))
		return native_wait(mutex, &w);
	if (at && !fg_valid_timespec(at)) /* glibc would say so too late: with the mutex released */
		return EINVAL;
	m = fg_cond_mutex_of(mutex);
	return _fg_bridge_wait(&bridges, cond, &m, native_wait, &w);
}

static int signal_native(void *cond)
{
	return fg_native_pthread_cond_signal()(cond);
}

static int broadcast_native(void *cond)
{
	return fg_native_pthread_cond_broadcast()(cond);
}

int fg_cond_bridge_wake(pthread_cond_t *cond, bool all)
{
	return _fg_bridge_wake(&bridges, cond, all ? broadcast_native : signal_native);
}

int fg_cond_bridge_destroy(pthread_cond_t *cond)
{
	return fg_native_pthread_cond_destroy()(cond);
}
