/* SPDX-License-Identifier: MIT */
/*
 * Mutexes that stay glibc's: robust (one list head a thread, which is glibc's),
 * priority inheritance (the kernel keeps the waiters in order) and protection,
 * process-shared (the other processes need not run FlexGuard).
 *
 * Process-shared and robust ones are spun for first, while fg_decide()
 * says so.  Waiters for the other two are ordered by priority: spinning would
 * keep the CPU from an owner that is to be boosted on it, and a spinner barges
 * in past a thread of higher priority.  They go to glibc at once.
 *
 * Every result is glibc's own, of its lock or trylock.
 */
#include "preload/mutex_native.h"

#include <errno.h>

#include "lock/native_wait.h"
#include "preload/preload.h"

#pragma GCC visibility pop /* nothing here is a pthread name */

/* The word of a robust mutex: the owner's tid and two flags (get_robust_list(2)). */
#define TID_BITS 0x3fffffffu

/* How often in one wait a thread may find it free and lose the race for it.  Not varied. */
#define TRIES 16

static bool is_ordered(const pthread_mutex_t *m)
{
	return m->__data.__kind & (FG_KIND_INHERIT | FG_KIND_PROTECT);
}

static bool is_robust(const pthread_mutex_t *m)
{
	return m->__data.__kind & FG_KIND_ROBUST;
}

/*
 * A guess, by the owner.  Looking at the word, right after the atomic of the
 * last unlock, costs 3 ns of 24 (uncontended, x86).
 */
static bool may_be_held(const pthread_mutex_t *m)
{
	return fg_load_relaxed(&m->__data.__owner);
}

static struct fg_native_view view_of(const pthread_mutex_t *m)
{
	const uint32_t *word = (const uint32_t *)&m->__data.__lock;

	/* A robust one's `owner` is not a tid while it is inconsistent. */
	if (is_robust(m))
		return (struct fg_native_view){word, TID_BITS, word, TID_BITS};
	return (struct fg_native_view){word, ~0u, (const uint32_t *)&m->__data.__owner, ~0u};
}

/*
 * Spins, then takes it or says EBUSY: glibc's own lock has to wait, or to
 * say what is wrong.  A robust one is never tried: trylock on one that is not
 * recoverable leaves it locked for ever (glibc 2.36).
 */
static __attribute__((noinline)) int spin_and_take(pthread_mutex_t *m,
						   const struct fg_deadline *deadline)
{
	struct fg_native_view v = view_of(m);
	struct fg_self *t = fg_self();

#ifdef FG_BROKEN_NATIVE /* a test proves that the tests notice */
	return _fg_native_wait(t, &v, deadline) ? 0 : EBUSY;
#endif
	for (int tries = 0; tries < TRIES && _fg_native_wait(t, &v, deadline); tries++) {
		int r = is_robust(m) ? EBUSY : fg_native_pthread_mutex_trylock()(m);

		if (r != EBUSY || is_robust(m))
			return r;
	}
	return EBUSY;
}

int fg_native_lock(pthread_mutex_t *m)
{
	int r = EBUSY;

	if (!is_ordered(m)) {
		_fg_native_round();
		if (may_be_held(m))
			r = spin_and_take(m, NULL);
	}
	return r == EBUSY ? fg_native_pthread_mutex_lock()(m) : r;
}

static int spin_and_take_timed(pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
	struct fg_deadline deadline = {.clock = clock};

	__asm__("" : "+r"(at)); /* the headers say that it is not NULL */
	if (!at)
		return EBUSY;
	deadline.at = *at;
	/* Of wrong arguments glibc says what is wrong. */
	if (is_ordered(m) || !may_be_held(m) || !fg_valid_clock(clock) || !fg_valid_timespec(at))
		return EBUSY;
	return spin_and_take(m, &deadline);
}

int fg_native_timedlock(pthread_mutex_t *m, const struct timespec *at)
{
	int r = spin_and_take_timed(m, CLOCK_REALTIME, at);

	return r == EBUSY ? fg_native_pthread_mutex_timedlock()(m, at) : r;
}

int fg_native_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
	int r = spin_and_take_timed(m, clock, at);

	return r == EBUSY ? fg_native_pthread_mutex_clocklock()(m, clock, at) : r;
}
