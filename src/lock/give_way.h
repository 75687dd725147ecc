/* SPDX-License-Identifier: MIT */
/*
 * Of two threads that share their CPUs with other processes, and whose rounds (rounds.h) are so
 * brief that both together make no more than one alone, one gives way once, so that from then on
 * each runs while the other does not (fg_give_way() in decide.h).
 */
#ifndef FG_GIVE_WAY_H
#define FG_GIVE_WAY_H

#include "lock/attempt.h"

/* The lock is held, its word has been seen as `word`.  True: the thread has slept. */
bool _fg_gives_way(const struct fg_lock *l, struct fg_self *t, struct attempt *a, uint32_t word);

#endif
