/* SPDX-License-Identifier: MIT */
/* What the adaptors share: views of the pthread types, and POSIX's argument checks. */
#ifndef FG_PRELOAD_H
#define FG_PRELOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "lock/cond.h"
#include "lock/mutex.h"
#include "preload/native.h"
#include "preload/versions.h"

/* The library is built with hidden visibility: what the adaptors define is the exception. */
#pragma GCC visibility push(default)

/*
 * Above the definition of a function that stands in the place of libc's: in here it is fg__name,
 * and it is exported under the name with all versions that libc has of it (versions.py).
 * FG_EXPORT_AS: under another name, too.
 */
#define FG_EXPORT(name)                                     \
	extern __typeof__(name) name __asm__("fg__" #name); \
	FG_VERSIONS_##name("fg__" #name)
#define FG_EXPORT_AS(other, name) FG_VERSIONS_##other("fg__" #name)

/* In place.  pthread_mutex_t has 48 bytes on arm64, of which glibc uses as many as here. */
_Static_assert(sizeof(struct fg_mutex) <= sizeof(pthread_mutex_t), "in place");
_Static_assert(sizeof(struct fg_cond) <= sizeof(pthread_cond_t), "in place");

static inline struct fg_mutex *fg_mutex_of(pthread_mutex_t *mutex)
{
	return (struct fg_mutex *)mutex;
}

static inline struct fg_cond *fg_cond_of(pthread_cond_t *cond)
{
	return (struct fg_cond *)cond;
}

/* A mutex of ours, as waits for a condition use it (mutex.c). */
struct fg_cond_mutex fg_cond_mutex_of(pthread_mutex_t *mutex) __attribute__((visibility("hidden")));

static inline bool fg_valid_timespec(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* The time that a timed function is given, as the kernel's clock will show it (sys/clock.h). */
static inline const struct timespec *fg_given_time(struct timespec *real, clockid_t clock,
						   const struct timespec *at, const void *caller)
{
	if (fg_likely(!fg_clock_is_faked) || !at)
		return at;
	*real = fg_clock_translate(clock, *at, caller);
	return real;
}

static inline bool fg_valid_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

#endif
