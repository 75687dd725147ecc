/* SPDX-License-Identifier: MIT */
/*
 * What the adaptors of the public API share.  The header shows plain words in
 * place of our structures: size and alignment are its promise, asserted where
 * each type is adapted.
 */
#ifndef FG_ADAPT_H
#define FG_ADAPT_H

#include <flexguard.h>
#include <stdbool.h>

#include "sys/futex.h"

#define FG_SAME_LAYOUT(shown, real)                                                        \
	_Static_assert(sizeof(shown) == sizeof(real) && _Alignof(shown) >= _Alignof(real), \
		       "the ABI of " #shown)

/* The deadline, if the clock is one of ours and the time is one. */
static inline bool fg_deadline_from(struct fg_deadline *d, clockid_t clock,
				    const struct timespec *at)
{
	if ((clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) || at->tv_nsec < 0 ||
	    at->tv_nsec >= 1000000000)
		return false;
	*d = (struct fg_deadline){.clock = clock, .at = fg_clock_real(clock, *at, NULL)};
	return true;
}

#endif
