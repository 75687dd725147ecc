/* SPDX-License-Identifier: MIT */
/*
 * Included by flexguard.h under -fsanitize=thread: each call that takes something
 * tells the sanitizer that it comes after those that gave it.  A wait that is
 * cancelled does not: what its cleanup handlers look at may be reported as a race.
 */
#ifndef FLEXGUARD_TSAN_H
#define FLEXGUARD_TSAN_H

#ifdef __cplusplus
extern "C" {
#endif

void __tsan_acquire(void *address);
void __tsan_release(void *address);

static inline int fg_tsan_taken(void *object, int error)
{
	if (!error)
		__tsan_acquire(object);
	return error;
}

static inline int fg_tsan_mutex_lock(fg_mutex_t *mutex)
{
	return fg_tsan_taken(mutex, fg_mutex_lock(mutex));
}

static inline int fg_tsan_mutex_trylock(fg_mutex_t *mutex)
{
	return fg_tsan_taken(mutex, fg_mutex_trylock(mutex));
}

static inline int fg_tsan_mutex_timedlock(fg_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	return fg_tsan_taken(mutex, fg_mutex_timedlock(mutex, clock, deadline));
}

static inline int fg_tsan_mutex_unlock(fg_mutex_t *mutex)
{
	__tsan_release(mutex);
	return fg_mutex_unlock(mutex);
}

/* The mutex is taken again whatever the wait says; who never gave it learns nothing new. */
static inline int fg_tsan_cond_wait(fg_cond_t *cond, fg_mutex_t *mutex)
{
	int error;

	__tsan_release(mutex);
	error = fg_cond_wait(cond, mutex);
	__tsan_acquire(mutex);
	return error;
}

static inline int fg_tsan_cond_timedwait(fg_cond_t *cond, fg_mutex_t *mutex, clockid_t clock,
					 const struct timespec *deadline)
{
	int error;

	__tsan_release(mutex);
	error = fg_cond_timedwait(cond, mutex, clock, deadline);
	__tsan_acquire(mutex);
	return error;
}

#ifdef __cplusplus
}
#endif

#define fg_mutex_lock fg_tsan_mutex_lock
#define fg_mutex_trylock fg_tsan_mutex_trylock
#define fg_mutex_timedlock fg_tsan_mutex_timedlock
#define fg_mutex_unlock fg_tsan_mutex_unlock
#define fg_cond_wait fg_tsan_cond_wait
#define fg_cond_timedwait fg_tsan_cond_timedwait

#endif
