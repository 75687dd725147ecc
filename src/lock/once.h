/* SPDX-License-Identifier: MIT */
/*
 * Things done once: a word with glibc's values, so that one which glibc has done
 * is done here too.
 *
 *   0                   not done
 *   fork epoch << 2 | 1 being done, in this process or in one that it came from
 *   2                   done
 */
#ifndef FG_ONCE_H
#define FG_ONCE_H

#include <stdint.h>

#include "sys/atomic.h"

enum { FG_ONCE_DONE = 2 };

void _fg_once_slow(uint32_t *once, void (*routine)(void));
void _fg_once_after_fork(void); /* in the child, by its only thread */

/*
 * Calls `routine` unless it has been called, and has returned, for this word.
 * Waits while another thread does.  Where the routine is cancelled, throws, or is left by
 * longjmp(), the word is not done, and the next one calls it.
 */
static inline void _fg_once(uint32_t *once, void (*routine)(void))
{
	/* Acquire: pairs with the release in _fg_once_slow(). */
	if (fg_unlikely(fg_load_acquire(once) != FG_ONCE_DONE))
		_fg_once_slow(once, routine);
}

#endif
