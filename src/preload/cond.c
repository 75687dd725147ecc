/* SPDX-License-Identifier: MIT */
/*
 * pthread_cond_*.  A private condition variable is ours and works with every
 * mutex, since it only releases and takes it.  A process-shared one stays
 * glibc's, whose waiters in other processes need not run FlexGuard; only where the mutexes
 * of other processes are ours too, with a lock of the zoo, is it lock/cond_shared.h.
 */
#include "preload/mutex_native.h"
#include "preload/preload.h"

#include <errno.h>

#include "lock/cond_shared.h"
#include "lock/epoch.h"

FG_EXPORT(pthread_cond_init);
FG_EXPORT(pthread_cond_wait);
FG_EXPORT(pthread_cond_timedwait);
FG_EXPORT(pthread_cond_clockwait);
FG_EXPORT(pthread_cond_signal);
FG_EXPORT(pthread_cond_broadcast);
FG_EXPORT(pthread_cond_destroy);

static bool is_shared(pthread_cond_t *cond)
{
	return fg_load_relaxed(&fg_cond_of(cond)->flags) & FG_COND_SHARED;
}

static clockid_t clock_of(pthread_cond_t *cond)
{
	return fg_load_relaxed(&fg_cond_of(cond)->flags) & FG_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static int release_mutex(void *mutex)
{
	return pthread_mutex_unlock(mutex);
}

static int take_mutex(void *mutex)
{
	return pthread_mutex_lock(mutex);
}

/*
 * One of glibc's, with a condition variable of ours: a waiter stays one of its users, as with one of glibc's, so that it
 * is not destroyed meanwhile.  Robust ones are destroyed without a look at that.
 */
struct native_mutex {
	pthread_mutex_t *mutex;
	bool is_user;
};

static int release_native(void *arg)
{
	struct native_mutex *n = arg;
	pthread_mutex_t *m = n->mutex;
	int r;

	n->is_user = !(m->__data.__kind & FG_KIND_ROBUST) &&
		     (uint32_t)fg_load_relaxed(&m->__data.__owner) == fg_thread_tid(fg_self());
	if (n->is_user)
		m->__data.__nusers++; /* guarded by the mutex */
	r = fg_native_pthread_mutex_unlock()(m);
	if (r && n->is_user)
		m->__data.__nusers--;
	return r;
}

static int take_native(void *arg)
{
	struct native_mutex *n = arg;
	int r = fg_native_lock(n->mutex);

	if (!r && n->is_user)
		n->mutex->__data.__nusers--;
	return r;
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	struct fg_cond *c = fg_cond_of(cond);
	clockid_t clock = CLOCK_REALTIME;
	int shared = PTHREAD_PROCESS_PRIVATE;

	if (attr) {
		pthread_condattr_getpshared(attr, &shared);
		pthread_condattr_getclock(attr, &clock);
		if (shared != PTHREAD_PROCESS_PRIVATE)
			return fg_native_pthread_cond_init()(cond, attr);
	}
	*c = (struct fg_cond){ .epoch = fg_epoch, .flags = clock == CLOCK_MONOTONIC ? FG_COND_MONOTONIC : 0 };
	return 0;
}

/*
 * glibc's condition variable with a mutex of ours: glibc would release and take
 * a mutex that it does not know.  So it gets one of its own, which waiters hold
 * from before they release theirs until they sleep, and which signallers of
 * this process hold as well: no signal comes in between.
 */
#define BRIDGES 64
static pthread_mutex_t bridges[BRIDGES];
static uint32_t bridges_epoch; /* fork epoch: a parent's thread may have had one when it was copied */

static void renew_bridges(void *all)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t *b = all;

	for (int i = 0; i < BRIDGES; i++)
		b[i] = fresh;
}

static pthread_mutex_t *bridge(const pthread_cond_t *cond)
{
	if (fg_unlikely(fg_load_acquire(&bridges_epoch) != fg_epoch))
		fg_enter_epoch(&bridges_epoch, renew_bridges, bridges);
	return &bridges[(uintptr_t)cond / sizeof(*cond) % BRIDGES];
}

struct bridged {
	pthread_mutex_t *bridge, *mutex;
};

static void leave_bridge(void *arg)
{
	struct bridged *b = arg;

	fg_native_pthread_mutex_unlock()(b->bridge);
	pthread_mutex_lock(b->mutex);
	fg_mutex_waiters(fg_mutex_of(b->mutex), -1u);
}

static int native_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	if (clock < 0)
		return at ? fg_native_pthread_cond_timedwait()(cond, mutex, at) :
			    fg_native_pthread_cond_wait()(cond, mutex);
	return fg_native_pthread_cond_clockwait()(cond, mutex, clock, at);
}

/*
 * A bridge is this process's, as are our mutexes.  With those of the zoo that other processes know too, a signal of
 * one of these could come between: there, the condition variable is ours as well.
 */
static struct fg_cond_shared *with_others(pthread_cond_t *cond)
{
	return (struct fg_cond_shared *)cond;
}

static int wait_with_others(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	struct fg_cond_mutex m = { release_mutex, take_mutex, mutex, NULL };
	struct fg_deadline deadline = { .clock = clock < 0 ? clock_of(cond) : clock };

	if (at) {
		if (!fg_valid_timespec(at))
			return EINVAL;
		deadline.at = *at;
	}
	return fg_cond_shared_sleep(with_others(cond), &m, at ? &deadline : NULL);
}

static int shared_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	struct bridged b = { bridge(cond), mutex };
	int r;

	if (fg_mutex_may_be_shared())
		return wait_with_others(cond, mutex, clock, at);
	if (!fg_mutex_is_ours(fg_mutex_of(mutex)))
		return native_wait(cond, mutex, clock, at);
	if (at && !fg_valid_timespec(at)) /* glibc would say so too late: with the mutex released */
		return EINVAL;
	fg_native_pthread_mutex_lock()(b.bridge);
	fg_mutex_waiters(fg_mutex_of(mutex), 1);
	r = pthread_mutex_unlock(mutex);
	if (r) {
		fg_mutex_waiters(fg_mutex_of(mutex), -1u);
		fg_native_pthread_mutex_unlock()(b.bridge);
		return r;
	}
	pthread_cleanup_push(leave_bridge, &b);
	r = native_wait(cond, b.bridge, clock, at);
	pthread_cleanup_pop(1);
	return r;
}

static int shared_wake(pthread_cond_t *cond, bool all)
{
	pthread_mutex_t *b = bridge(cond);
	int r;

	if (fg_mutex_may_be_shared()) {
		fg_cond_shared_wake(with_others(cond), all);
		return 0;
	}
	fg_native_pthread_mutex_lock()(b);
	r = all ? fg_native_pthread_cond_broadcast()(cond) : fg_native_pthread_cond_signal()(cond);
	fg_native_pthread_mutex_unlock()(b);
	return r;
}

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	struct fg_mutex *ours = fg_mutex_of(mutex);
	struct native_mutex native = { .mutex = mutex };
	struct fg_cond_mutex m = { release_mutex, take_mutex, mutex, ours };
	struct fg_deadline deadline = { .clock = clock };

	if (fg_unlikely(!fg_mutex_is_ours(ours)))
		m = (struct fg_cond_mutex){ release_native, take_native, &native, NULL };

	if (at) {
		if (!fg_valid_timespec(at))
			return EINVAL;
		deadline.at = *at;
	}
	return fg_cond_sleep(fg_cond_of(cond), &m, at ? &deadline : NULL);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (fg_unlikely(is_shared(cond)))
		return shared_wait(cond, mutex, -1, NULL);
	return wait_until(cond, mutex, CLOCK_REALTIME, NULL);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, clock_of(cond), abstime, FG_CALLER);
	if (fg_unlikely(is_shared(cond)))
		return shared_wait(cond, mutex, -1, abstime);
	return wait_until(cond, mutex, clock_of(cond), abstime);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	if (!fg_valid_clock(clock))
		return EINVAL;
	if (fg_unlikely(is_shared(cond)))
		return shared_wait(cond, mutex, clock, abstime);
	return wait_until(cond, mutex, clock, abstime);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	if (fg_unlikely(is_shared(cond)))
		return shared_wake(cond, false);
	fg_cond_wake_one(fg_cond_of(cond));
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	if (fg_unlikely(is_shared(cond)))
		return shared_wake(cond, true);
	fg_cond_wake_all(fg_cond_of(cond));
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	if (is_shared(cond) && fg_mutex_may_be_shared()) {
		fg_cond_shared_end(with_others(cond));
		return 0;
	}
	if (is_shared(cond))
		return fg_native_pthread_cond_destroy()(cond);
	fg_cond_end(fg_cond_of(cond));
	return 0;
}
