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
