/* SPDX-License-Identifier: MIT */
/*
 * Process-shared condition variables stay glibc's, whose waiters in other processes need not run
 * FlexGuard: fg_cond_bridge_*().  What preload/cond.c calls is fg_cond_pshared_*(): the same here
 * (cond_pshared.c), a choice in src/zoo, since with some of its locks the mutexes of other
 * processes are ours.
 */
#ifndef FG_COND_PSHARED_H
#define FG_COND_PSHARED_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "lock/cond.h"

/*
 * Where glibc has the flags of its own: 36 or 28.  The constructor finds out; what it was compiled
 * with is right until then, unless the C library is another.
 */
extern uint32_t fg_cond_flags_at;
/* From one that glibc has initialised as process-shared; false: at neither place. */
bool fg_cond_find_flags(const pthread_cond_t *cond);

static inline uint32_t fg_cond_glibc_flags(const pthread_cond_t *cond)
{
	const char *at = (const char *)cond + fg_load_relaxed(&fg_cond_flags_at);

	return fg_load_relaxed((const uint32_t *)at);
}

static inline bool fg_cond_is_shared(const pthread_cond_t *cond)
{
	return fg_cond_glibc_flags(cond) & FG_COND_SHARED;
}

/* That of its timed waits, whosever it is. */
static inline clockid_t fg_cond_clock(const pthread_cond_t *cond)
{
	const struct fg_cond *ours = (const struct fg_cond *)cond;
	uint32_t flags = fg_cond_glibc_flags(cond);

	if (!(flags & FG_COND_SHARED))
		return _fg_cond_clock(ours);
	return flags & FG_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/*
 * `clock` below 0: the condition variable's own.  `at` NULL: no deadline.  What pthread_cond_wait()
 * returns.
 */
int fg_cond_pshared_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			 const struct timespec *at);
int fg_cond_pshared_wake(pthread_cond_t *cond, bool all);
int fg_cond_pshared_destroy(pthread_cond_t *cond);

int fg_cond_bridge_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			const struct timespec *at);
int fg_cond_bridge_wake(pthread_cond_t *cond, bool all);
int fg_cond_bridge_destroy(pthread_cond_t *cond);

#endif
