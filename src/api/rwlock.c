/* SPDX-License-Identifier: MIT */
/* fg_rwlock_*: the API's names for lock/rwlock.h. */
#include "api/adapt.h"

#include <errno.h>

#include "rwlock_ours.h"

FG_SAME_LAYOUT(fg_rwlock_t, struct fg_rwlock);
_Static_assert(offsetof(fg_rwlock_t, fg_kind) == offsetof(struct fg_rwlock, kind),
	       "static initialisers");
_Static_assert(FG_RWLOCK_WRITERS_FIRST == (int)FG_RW_WRITERS_FIRST, "the header's number");

static struct fg_rwlock *rwlock_of(fg_rwlock_t *rwlock)
{
	return (struct fg_rwlock *)rwlock;
}

int fg_rwlock_init(fg_rwlock_t *rwlock, int kind)
{
	if (kind != FG_RWLOCK_DEFAULT && kind != FG_RWLOCK_WRITERS_FIRST)
		return EINVAL;
	_fg_chosen_rwlock_init(rwlock_of(rwlock), kind, false);
	return 0;
}

int fg_rwlock_destroy(fg_rwlock_t *rwlock)
{
	_fg_chosen_rwlock_destroy(rwlock_of(rwlock));
	return 0;
}

int fg_rwlock_rdlock(fg_rwlock_t *rwlock)
{
	return _fg_chosen_rwlock_rdlock(rwlock_of(rwlock), NULL, FG_CALLER);
}

int fg_rwlock_tryrdlock(fg_rwlock_t *rwlock)
{
	return _fg_chosen_rwlock_tryrdlock(rwlock_of(rwlock));
}

int fg_rwlock_timedrdlock(fg_rwlock_t *rwlock, clockid_t clock, const struct timespec *deadline)
{
	struct fg_deadline d;

	return fg_deadline_from(&d, clock, deadline) ?
		   _fg_chosen_rwlock_rdlock(rwlock_of(rwlock), &d, FG_CALLER) :
		   EINVAL;
}

int fg_rwlock_wrlock(fg_rwlock_t *rwlock)
{
	return _fg_chosen_rwlock_wrlock(rwlock_of(rwlock), NULL, FG_CALLER);
}

int fg_rwlock_trywrlock(fg_rwlock_t *rwlock)
{
	return _fg_chosen_rwlock_trywrlock(rwlock_of(rwlock));
}

int fg_rwlock_timedwrlock(fg_rwlock_t *rwlock, clockid_t clock, const struct timespec *deadline)
{
	struct fg_deadline d;

	return fg_deadline_from(&d, clock, deadline) ?
		   _fg_chosen_rwlock_wrlock(rwlock_of(rwlock), &d, FG_CALLER) :
		   EINVAL;
}

int fg_rwlock_unlock(fg_rwlock_t *rwlock)
{
	return _fg_chosen_rwlock_unlock(rwlock_of(rwlock));
}
