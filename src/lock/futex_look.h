/* SPDX-License-Identifier: MIT */
/*
 * Being late for FUTEX_WAIT: a thread of another library that is about to sleep until a
 * word changes looks at the word for a while first.  A thread that comes later to the same call is
 * what every user of futex(2) has to live with; so nothing of the other library need be known, and
 * every wake-up is still made.
 *
 * When to look, how long, and when not to, is seen from how it went at this word before; see
 * futex_look.c.
 */
#ifndef FG_FUTEX_LOOK_H
#define FG_FUTEX_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* A word that the kernel has accepted in a wait. */
bool _fg_futex_is_known(const uint32_t *word);
void _fg_futex_accepted(const uint32_t *word);

/*
 * Looks at a known word.  True: it is not `value` now.  False: the wait is the kernel's, at once.
 */
bool _fg_futex_look(const uint32_t *word, uint32_t value);

/*
 * Around the kernel's wait for a known word.  The first gives 0, or what the second is told:
 * `woken`, by another thread.
 */
uint64_t _fg_futex_sleeps(const uint32_t *word);
void _fg_futex_slept(const uint32_t *word, uint64_t since, bool woken);

#endif
