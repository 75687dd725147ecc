/* SPDX-License-Identifier: MIT */
/* fg_mutex_*: the API's names for lock/mutex.h. */
#include "api/adapt.h"

#include <errno.h>

#include "lock/mutex.h"

FG_SAME_LAYOUT(fg_mutex_t, struct fg_mutex);
_Static_assert(offsetof(fg_mutex_t, fg_kind) == offsetof(struct fg_mutex, lock.tag),
	       "static initialisers");
_Static_assert(FG_MUTEX_NORMAL == (int)FG_KIND_NORMAL &&
		   FG_MUTEX_RECURSIVE == (int)FG_KIND_RECURSIVE &&
		   FG_MUTEX_ERRORCHECK == (int)FG_KIND_ERRORCHECK &&
		   FG_MUTEX_MOVABLE == (int)FG_KIND_MOVABLE,
	       "the header's numbers");

static struct fg_mutex *mutex_of(fg_mutex_t *mutex)
{
	return (struct fg_mutex *)mutex;
}

int fg_mutex_init(fg_mutex_t *mutex, int kind)
{
	if ((kind < FG_MUTEX_NORMAL || kind > FG_MUTEX_ERRORCHECK) && kind != FG_MUTEX_MOVABLE)
		return EINVAL;
	_fg_mutex_is_made(mutex_of(mutex));
	*mutex_of(mutex) = (struct fg_mutex){.lock.tag = (uint32_t)kind};
	return 0;
}

int fg_mutex_destroy(fg_mutex_t *mutex)
{
	return _fg_mutex_destroy(mutex_of(mutex));
}

/* Out of line, so that the fast paths need no stack. */
static __attribute__((noinline)) int lock_slow(struct fg_mutex *m)
{
	return _fg_mutex_lock(m, NULL, FG_CALLER);
}

static __attribute__((noinline)) int lock_typed(struct fg_mutex *m)
{
	return _fg_mutex_lock_typed(m, NULL, FG_CALLER);
}

FG_HOT int fg_mutex_lock(fg_mutex_t *mutex)
{
	struct fg_mutex *m = mutex_of(mutex);

	if (fg_unlikely(!_fg_mutex_is_normal(m)))
		return lock_typed(m);
	return fg_likely(_fg_lock_fast(&m->lock)) ? 0 : lock_slow(m);
}

int fg_mutex_trylock(fg_mutex_t *mutex)
{
	struct fg_mutex *m = mutex_of(mutex);

	if (fg_likely(_fg_mutex_is_normal(m)))
		return _fg_trylock(&m->lock) ? 0 : EBUSY;
	return _fg_mutex_trylock(m);
}

int fg_mutex_timedlock(fg_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	struct fg_deadline d;

	return fg_deadline_from(&d, clock, deadline) ?
		   _fg_mutex_lock(mutex_of(mutex), &d, FG_CALLER) :
		   EINVAL;
}

FG_HOT int fg_mutex_unlock(fg_mutex_t *mutex)
{
	struct fg_mutex *m = mutex_of(mutex);

	if (fg_unlikely(!_fg_mutex_is_normal(m)))
		return _fg_mutex_unlock(m);
	return fg_likely(_fg_unlock_fast(&m->lock)) ? 0 : _fg_mutex_unlock_slow(m);
}
