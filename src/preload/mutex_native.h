/* SPDX-License-Identifier: MIT */
/* Taking glibc's mutexes; they return what glibc's own return. */
#ifndef FG_MUTEX_NATIVE_H
#define FG_MUTEX_NATIVE_H

#include <pthread.h>

int fg_native_lock(pthread_mutex_t *m);
int fg_native_timedlock(pthread_mutex_t *m, const struct timespec *at);
int fg_native_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at);

#endif
