/* SPDX-License-Identifier: MIT */
/*
 * What adaptors (api, preload) call for a reader-writer lock: lock/rwlock.h.  Another build has
 * another one of these in front of it, as for mutexes (lock/mutex.h).
 *
 *   _fg_rwlock_may_be_shared()	those that other processes know are ours, too
 *   _fg_chosen_rwlock_init()		a new one that is ours
 *   _fg_chosen_rwlock_destroy()	of the API alone: in Rust a guard may be forgotten
 *   _fg_chosen_rwlock_...()	as the functions of that name in lock/rwlock.h
 */
#ifndef FG_RWLOCK_OURS_H
#define FG_RWLOCK_OURS_H

#include "lock/rwlock.h"

/* Process-shared ones stay glibc's, whose users in other processes need not run FlexGuard. */
static inline bool _fg_rwlock_may_be_shared(void)
{
	return false;
}

static inline void _fg_chosen_rwlock_init(struct fg_rwlock *rw, int kind, bool shared)
{
	(void)shared;
	*rw = (struct fg_rwlock){.kind = (uint32_t)kind};
}

static inline void _fg_chosen_rwlock_destroy(struct fg_rwlock *rw)
{
	_fg_rwlock_destroy(rw);
}

static inline int _fg_chosen_rwlock_rdlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
					   const void *caller)
{
	return _fg_rwlock_rdlock(rw, deadline, caller);
}

static inline int _fg_chosen_rwlock_wrlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
					   const void *caller)
{
	return _fg_rwlock_wrlock(rw, deadline, caller);
}

static inline int _fg_chosen_rwlock_tryrdlock(struct fg_rwlock *rw)
{
	return _fg_rwlock_tryrdlock(rw);
}

static inline int _fg_chosen_rwlock_trywrlock(struct fg_rwlock *rw)
{
	return _fg_rwlock_trywrlock(rw);
}

static inline int _fg_chosen_rwlock_unlock(struct fg_rwlock *rw)
{
	return _fg_rwlock_unlock(rw);
}

#endif
