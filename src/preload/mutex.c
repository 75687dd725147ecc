/* SPDX-License-Identifier: MIT */
/*
 * pthread_mutex_*: which mutexes are ours, and POSIX's argument checks.  All
 * names of the family stand here: one that escaped to glibc on a mutex of ours
 * would be the end of mutual exclusion.
 */
#include "preload/mutex_native.h"
#include "preload/preload.h"

#include <errno.h>

FG_EXPORT(pthread_mutex_init);
FG_EXPORT(pthread_mutex_destroy);
FG_EXPORT(pthread_mutex_lock);
FG_EXPORT(pthread_mutex_trylock);
FG_EXPORT(pthread_mutex_unlock);
FG_EXPORT(pthread_mutex_timedlock);
FG_EXPORT(pthread_mutex_clocklock);
FG_EXPORT(pthread_mutex_consistent);
FG_EXPORT(pthread_mutex_getprioceiling);
FG_EXPORT(pthread_mutex_setprioceiling);
/* Names that glibc exports beside the standard ones, and that some programs call. */
FG_EXPORT_AS(__pthread_mutex_init, pthread_mutex_init);
FG_EXPORT_AS(__pthread_mutex_destroy, pthread_mutex_destroy);
FG_EXPORT_AS(__pthread_mutex_lock, pthread_mutex_lock);
FG_EXPORT_AS(__pthread_mutex_trylock, pthread_mutex_trylock);
FG_EXPORT_AS(__pthread_mutex_unlock, pthread_mutex_unlock);

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	struct fg_mutex *m = fg_mutex_of(mutex);
	int type = PTHREAD_MUTEX_NORMAL, shared = 0, robust = 0, protocol = 0;

	if (attr) {
		pthread_mutexattr_gettype(attr, &type);
		pthread_mutexattr_getpshared(attr, &shared);
		pthread_mutexattr_getrobust(attr, &robust);
		pthread_mutexattr_getprotocol(attr, &protocol);
		if ((shared != PTHREAD_PROCESS_PRIVATE && !_fg_mutex_may_be_shared()) ||
		    robust != PTHREAD_MUTEX_STALLED || protocol != PTHREAD_PRIO_NONE)
			return fg_native_pthread_mutex_init()(mutex, attr);
	}
	_fg_mutex_is_made(m);
	*m = (struct fg_mutex){.lock.tag = _fg_mutex_kind(type, shared != PTHREAD_PROCESS_PRIVATE)};
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	struct fg_mutex *m = fg_mutex_of(mutex);

	return _fg_mutex_is_ours(m) ? _fg_mutex_destroy(m) :
				      fg_native_pthread_mutex_destroy()(mutex);
}

/* Out of line, so that the fast paths need no stack. */
static __attribute__((noinline)) int lock_slow(struct fg_mutex *m)
{
	return _fg_mutex_lock_slow(m, FG_CALLER);
}

static __attribute__((noinline)) int lock_typed(struct fg_mutex *m)
{
	if (fg_unlikely(!_fg_mutex_is_ours(m)))
		return fg_native_lock((pthread_mutex_t *)m);
	return _fg_mutex_lock_typed(m, NULL, FG_CALLER);
}

static __attribute__((noinline)) int unlock_typed(struct fg_mutex *m)
{
	if (fg_unlikely(!_fg_mutex_is_ours(m)))
		return fg_native_pthread_mutex_unlock()((pthread_mutex_t *)m);
	return _fg_mutex_unlock(m);
}

FG_HOT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct fg_mutex *m = fg_mutex_of(mutex);

	if (fg_unlikely(!_fg_mutex_is_normal(m)))
		return lock_typed(m);
	return fg_likely(_fg_lock_fast(&m->lock)) ? 0 : lock_slow(m);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct fg_mutex *m = fg_mutex_of(mutex);

	if (fg_likely(_fg_mutex_is_normal(m)))
		return _fg_trylock(&m->lock) ? 0 : EBUSY;
	if (!_fg_mutex_is_ours(m))
		return fg_native_pthread_mutex_trylock()(mutex);
	return _fg_mutex_trylock(m);
}

FG_HOT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	struct fg_mutex *m = fg_mutex_of(mutex);

	if (fg_unlikely(!_fg_mutex_is_normal(m)))
		return unlock_typed(m);
	return fg_likely(_fg_unlock_fast(&m->lock)) ? 0 : _fg_mutex_unlock_slow(m);
}

/* A free mutex is locked whatever the time says; only where there is a wait, one is told EINVAL. */
static int lock_by(struct fg_mutex *m, clockid_t clock, const struct timespec *at,
		   const void *caller)
{
	struct fg_deadline deadline = {.clock = clock};

	__asm__("" : "+r"(at)); /* the headers say that it is not NULL */
	if (!at) /* glibc's takes a free one, and waits for another for ever or crashes */
		return _fg_mutex_lock(m, NULL, caller);
	deadline.at = *at;
	if (!fg_valid_timespec(at)) {
		int r;

		deadline.at = (struct timespec){0}; /* long ago */
		r = _fg_mutex_lock(m, &deadline, caller);
		/* of what is wrong twice glibc says that it is over */
		return r == ETIMEDOUT && at->tv_sec >= 0 ? EINVAL : r;
	}
	return _fg_mutex_lock(m, &deadline, caller);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *abstime)
{
	struct fg_mutex *m = fg_mutex_of(mutex);
	struct timespec real;

	abstime = fg_given_time(&real, CLOCK_REALTIME, abstime, FG_CALLER);
	if (fg_unlikely(!_fg_mutex_is_ours(m)))
		return fg_native_timedlock(mutex, abstime);
	return lock_by(m, CLOCK_REALTIME, abstime, FG_CALLER);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *abstime)
{
	struct fg_mutex *m = fg_mutex_of(mutex);
	struct timespec real;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	if (fg_unlikely(!_fg_mutex_is_ours(m)))
		return fg_native_clocklock(mutex, clock, abstime);
	if (!fg_valid_clock(clock))
		return EINVAL;
	return lock_by(m, clock, abstime, FG_CALLER);
}

int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
	if (_fg_mutex_is_ours(fg_mutex_of(mutex)))
		return EINVAL; /* not robust */
	return fg_native_pthread_mutex_consistent()(mutex);
}

int pthread_mutex_getprioceiling(const pthread_mutex_t *mutex, int *ceiling)
{
	if (_fg_mutex_is_ours(fg_mutex_of((pthread_mutex_t *)mutex)))
		return EINVAL; /* not PTHREAD_PRIO_PROTECT */
	return fg_native_pthread_mutex_getprioceiling()(mutex, ceiling);
}

int pthread_mutex_setprioceiling(pthread_mutex_t *mutex, int ceiling, int *old)
{
	if (_fg_mutex_is_ours(fg_mutex_of(mutex)))
		return EINVAL;
	return fg_native_pthread_mutex_setprioceiling()(mutex, ceiling, old);
}

static int release(void *mutex)
{
	return pthread_mutex_unlock(mutex);
}

static int take(void *mutex)
{
	return pthread_mutex_lock(mutex);
}

struct fg_cond_mutex fg_cond_mutex_of(pthread_mutex_t *mutex)
{
	return (struct fg_cond_mutex){release, take, mutex, fg_mutex_of(mutex)};
}
