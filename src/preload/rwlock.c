/* SPDX-License-Identifier: MIT */
/*
 * pthread_rwlock_*.  Process-shared ones stay glibc's, whose users in other
 * processes need not run FlexGuard.
 */
#include "preload/preload.h"

#include <errno.h>
#include <string.h>

#include "rwlock_ours.h"

FG_EXPORT(pthread_rwlock_init);
FG_EXPORT(pthread_rwlock_destroy);
FG_EXPORT(pthread_rwlock_rdlock);
FG_EXPORT(pthread_rwlock_tryrdlock);
FG_EXPORT(pthread_rwlock_wrlock);
FG_EXPORT(pthread_rwlock_trywrlock);
FG_EXPORT(pthread_rwlock_timedrdlock);
FG_EXPORT(pthread_rwlock_timedwrlock);
FG_EXPORT(pthread_rwlock_clockrdlock);
FG_EXPORT(pthread_rwlock_clockwrlock);
FG_EXPORT(pthread_rwlock_unlock);
/* Names that glibc exports beside the standard ones, and that some programs call. */
FG_EXPORT_AS(__pthread_rwlock_init, pthread_rwlock_init);
FG_EXPORT_AS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
FG_EXPORT_AS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
FG_EXPORT_AS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
FG_EXPORT_AS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
FG_EXPORT_AS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
FG_EXPORT_AS(__pthread_rwlock_unlock, pthread_rwlock_unlock);

_Static_assert(sizeof(struct fg_rwlock) == sizeof(pthread_rwlock_t), "in place");

static struct fg_rwlock *rwlock_of(pthread_rwlock_t *rwlock)
{
	return (struct fg_rwlock *)rwlock;
}

static bool is_ours(pthread_rwlock_t *rwlock)
{
	return fg_likely(!rwlock_of(rwlock)->shared);
}

int pthread_rwlock_init(pthread_rwlock_t *rwlock, const pthread_rwlockattr_t *attr)
{
	int shared = PTHREAD_PROCESS_PRIVATE, kind = PTHREAD_RWLOCK_DEFAULT_NP;

	if (attr) {
		pthread_rwlockattr_getpshared(attr, &shared);
		pthread_rwlockattr_getkind_np(attr, &kind);
		if (shared != PTHREAD_PROCESS_PRIVATE && !_fg_rwlock_may_be_shared())
			return fg_native_pthread_rwlock_init()(rwlock, attr);
	}
	_fg_chosen_rwlock_init(rwlock_of(rwlock), kind, shared != PTHREAD_PROCESS_PRIVATE);
	return 0;
}

int pthread_rwlock_destroy(pthread_rwlock_t *rwlock)
{
	if (!is_ours(rwlock))
		return fg_native_pthread_rwlock_destroy()(rwlock);
	/* As it is: at exit() threads go on with what destructors have destroyed. */
	return 0;
}

/* Out of line, so that the fast paths need no stack. */
static __attribute__((noinline)) int native_rdlock(pthread_rwlock_t *rwlock)
{
	return fg_native_pthread_rwlock_rdlock()(rwlock);
}

static __attribute__((noinline)) int native_wrlock(pthread_rwlock_t *rwlock)
{
	return fg_native_pthread_rwlock_wrlock()(rwlock);
}

static __attribute__((noinline)) int native_unlock(pthread_rwlock_t *rwlock)
{
	return fg_native_pthread_rwlock_unlock()(rwlock);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	return is_ours(rwlock) ? _fg_chosen_rwlock_rdlock(rwlock_of(rwlock), NULL, FG_CALLER) :
				 native_rdlock(rwlock);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	return is_ours(rwlock) ? _fg_chosen_rwlock_tryrdlock(rwlock_of(rwlock)) :
				 fg_native_pthread_rwlock_tryrdlock()(rwlock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	return is_ours(rwlock) ? _fg_chosen_rwlock_wrlock(rwlock_of(rwlock), NULL, FG_CALLER) :
				 native_wrlock(rwlock);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	return is_ours(rwlock) ? _fg_chosen_rwlock_trywrlock(rwlock_of(rwlock)) :
				 fg_native_pthread_rwlock_trywrlock()(rwlock);
}

/* In contrast to mutexes, glibc refuses an invalid time even if there is no need to wait. */
static int lock_by(int (*lock)(struct fg_rwlock *, const struct fg_deadline *, const void *caller),
		   pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *at,
		   const void *caller)
{
	struct fg_deadline deadline = {.clock = clock};

	/* The headers say that it is not NULL; glibc's code does not mind. */
	__asm__("" : "+r"(at));
	if (!at) /* as glibc's, whatever the clock */
		return lock(rwlock_of(rwlock), NULL, caller);
	if (!fg_valid_clock(clock) || !fg_valid_timespec(at))
		return EINVAL;
	deadline.at = *at;
	return lock(rwlock_of(rwlock), &deadline, caller);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, CLOCK_REALTIME, abstime, FG_CALLER);
	return is_ours(rwlock) ?
		   lock_by(_fg_chosen_rwlock_rdlock, rwlock, CLOCK_REALTIME, abstime, FG_CALLER) :
		   fg_native_pthread_rwlock_timedrdlock()(rwlock, abstime);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, CLOCK_REALTIME, abstime, FG_CALLER);
	return is_ours(rwlock) ?
		   lock_by(_fg_chosen_rwlock_wrlock, rwlock, CLOCK_REALTIME, abstime, FG_CALLER) :
		   fg_native_pthread_rwlock_timedwrlock()(rwlock, abstime);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock,
			       const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	return is_ours(rwlock) ?
		   lock_by(_fg_chosen_rwlock_rdlock, rwlock, clock, abstime, FG_CALLER) :
		   fg_native_pthread_rwlock_clockrdlock()(rwlock, clock, abstime);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock,
			       const struct timespec *abstime)
{
	struct timespec real;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	return is_ours(rwlock) ?
		   lock_by(_fg_chosen_rwlock_wrlock, rwlock, clock, abstime, FG_CALLER) :
		   fg_native_pthread_rwlock_clockwrlock()(rwlock, clock, abstime);
}

int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	return is_ours(rwlock) ? _fg_chosen_rwlock_unlock(rwlock_of(rwlock)) :
				 native_unlock(rwlock);
}
