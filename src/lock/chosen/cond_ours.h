/* SPDX-License-Identifier: MIT */
/*
 * What adaptors (api, preload) call for a condition variable that is ours: lock/cond.h.  Another
 * build has another one of these in front of it, as for mutexes (lock/mutex.h).
 */
#ifndef FG_COND_OURS_H
#define FG_COND_OURS_H

#include "lock/cond.h"

static inline int _fg_chosen_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m,
				       const struct fg_deadline *deadline)
{
	return _fg_cond_wait(c, m, deadline);
}

static inline void _fg_chosen_cond_signal(struct fg_cond *c)
{
	_fg_cond_signal(c);
}

static inline void _fg_chosen_cond_broadcast(struct fg_cond *c)
{
	_fg_cond_broadcast(c);
}

static inline void _fg_chosen_cond_destroy(struct fg_cond *c)
{
	_fg_cond_destroy(c);
}

#endif
