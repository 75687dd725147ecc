/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking: the futex calls and the deadlines that they take.  None
 * of them touches errno.  Source: futex(2); Franke, Russell, Kirkwood, "Fuss,
 * Futexes and Furwocks", OLS 2002.
 */
#ifndef FG_FUTEX_H
#define FG_FUTEX_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "sys/clock.h"

/* When a wait ends: absolute, on the kernel's CLOCK_REALTIME or CLOCK_MONOTONIC.  NULL: never. */
struct fg_deadline {
	clockid_t clock;
	/*
	 * set by the waiter, which tries another way then; the program has asked for no such time
	 */
	bool internal;
	/* the same, of a gate: mostly it is over long before, so it waits as if there were none */
	bool unlikely;
	/* of a gate for an event: it ends as soon as the waiter should not spin any more */
	bool is_event;
	struct timespec at;
};

#define FG_FUTEX_ANY 0xffffffffu

/*
 * 0 if woken (or spuriously), -EAGAIN if *word != expected, -EINTR, -ETIMEDOUT.
 * `channels` is a set of bits that a wake-up may ask for; FG_FUTEX_ANY if none does.
 */
int fg_futex_wait(uint32_t *word, uint32_t expected, uint32_t channels,
		  const struct fg_deadline *deadline);

/*
 * Wakes up to `count` sleepers with a bit of `channels`; returns how many.
 * `word` need not be mapped any more.
 */
int fg_futex_wake(uint32_t *word, int count, uint32_t channels);

/*
 * The same wait as a cancellation point: a pending or arriving cancellation of
 * the calling thread unwinds from inside.  The caller has its cleanup handler
 * pushed and must take the cancelled wait for one that may have been woken.
 */
int fg_futex_wait_cancellable(uint32_t *word, uint32_t expected,
			      const struct fg_deadline *deadline);

/* The same three between processes, which may have the word mapped at different addresses. */
int fg_futex_wait_shared(uint32_t *word, uint32_t expected, const struct fg_deadline *deadline);
int fg_futex_wake_shared(uint32_t *word, int count);
int fg_futex_wait_shared_cancellable(uint32_t *word, uint32_t expected,
				     const struct fg_deadline *deadline);

/* pthread_testcancel(). */
void fg_testcancel(void);

bool fg_deadline_passed(const struct fg_deadline *deadline);
/* from now on; on CLOCK_MONOTONIC */
void fg_deadline_in(struct fg_deadline *deadline, uint64_t ns);
uint64_t fg_deadline_left(const struct fg_deadline *deadline); /* ns; UINT64_MAX for NULL */

#endif
