/* SPDX-License-Identifier: MIT */
/*
 * pthread_cond_*.  A private condition variable is ours and works with every
 * mutex, since it only releases and takes it.  Process-shared ones: cond_pshared.h.
 */
#include "cond_ours.h"
#include "preload/cond_pshared.h"
#include "preload/mutex_native.h"
#include "preload/preload.h"

#include <errno.h>

FG_EXPORT(pthread_cond_init);
FG_EXPORT(pthread_cond_wait);
FG_EXPORT(pthread_cond_timedwait);
FG_EXPORT(pthread_cond_clockwait);
FG_EXPORT(pthread_cond_signal);
FG_EXPORT(pthread_cond_broadcast);
FG_EXPORT(pthread_cond_destroy);

/*
 * One of glibc's, with a condition variable of ours: a waiter stays one of its users, as with one
 * of glibc's, so that it is not destroyed meanwhile.  Robust ones are destroyed without a look at
 * that.
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
		if (shared != PTHREAD_PROCESS_PRIVATE) {
			int r = fg_native_pthread_cond_init()(cond, attr);

			/* of a C library with yet another layout, it would be taken for ours */
			return r || fg_cond_find_flags(cond) ? r : ENOTSUP;
		}
	}
	*c = (struct fg_cond){.epoch = fg_epoch,
			      .flags = clock == CLOCK_MONOTONIC ? FG_COND_MONOTONIC : 0};
	return 0;
}

static int wait_on(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		   const struct timespec *at)
{
	struct native_mutex native = {.mutex = mutex};
	struct fg_cond_mutex m = fg_cond_mutex_of(mutex);
	struct fg_deadline deadline = {.clock = clock};

	if (fg_unlikely(!_fg_mutex_is_ours(m.ours)))
		m = (struct fg_cond_mutex){release_native, take_native, &native, NULL};

	if (at) {
		if (!fg_valid_timespec(at))
			return EINVAL;
		deadline.at = *at;
	}
	return _fg_chosen_cond_wait(fg_cond_of(cond), &m, at ? &deadline : NULL);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (fg_unlikely(fg_cond_is_shared(cond)))
		return fg_cond_pshared_wait(cond, mutex, -1, NULL);
	return wait_on(cond, mutex, CLOCK_REALTIME, NULL);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			   const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, fg_cond_clock(cond), abstime, FG_CALLER);
	if (fg_unlikely(fg_cond_is_shared(cond)))
		return fg_cond_pshared_wait(cond, mutex, -1, abstime);
	return wait_on(cond, mutex, _fg_cond_clock(fg_cond_of(cond)), abstime);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	if (!fg_valid_clock(clock))
		return EINVAL;
	if (fg_unlikely(fg_cond_is_shared(cond)))
		return fg_cond_pshared_wait(cond, mutex, clock, abstime);
	return wait_on(cond, mutex, clock, abstime);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	if (fg_unlikely(fg_cond_is_shared(cond)))
		return fg_cond_pshared_wake(cond, false);
	_fg_chosen_cond_signal(fg_cond_of(cond));
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	if (fg_unlikely(fg_cond_is_shared(cond)))
		return fg_cond_pshared_wake(cond, true);
	_fg_chosen_cond_broadcast(fg_cond_of(cond));
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	if (fg_cond_is_shared(cond))
		return fg_cond_pshared_destroy(cond);
	_fg_chosen_cond_destroy(fg_cond_of(cond));
	return 0;
}
