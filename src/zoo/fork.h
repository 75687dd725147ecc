/* SPDX-License-Identifier: MIT */
/*
 * A child's copy of a mutex has the queue, the tickets or the semaphore of threads that it does not
 * have. The kind has room for the fork that a mutex is of; at its first use in a child it is made
 * anew, held if it was.  `owner` is right in the child: the thread that forks was not in the middle
 * of anything.
 */
#ifndef FG_ZOO_FORK_H
#define FG_ZOO_FORK_H

#include "zoo/zoo.h"

#define ZOO_EPOCH_SHIFT 12
#define ZOO_EPOCH_MASK	0xffffu

/* Acquire: pairs with zoo_renew(). */
static inline bool zoo_is_parents(const struct zoo_mutex *m)
{
	return fg_unlikely(((fg_load_acquire(&m->kind) >> ZOO_EPOCH_SHIFT ^
			     fg_load_relaxed(&fg_epoch)) &
			    ZOO_EPOCH_MASK) != 0);
}

void zoo_renew(struct zoo_mutex *m, const struct zoo_lock *z);

#endif
