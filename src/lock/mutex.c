/* SPDX-License-Identifier: MIT */
/* The mutex types that know their owner. */
#include "lock/mutex.h"

static bool owned_by(const struct fg_mutex *m, const struct fg_self *t)
{
	/* Relaxed: only we can have written our own id. */
	return (fg_load_relaxed(&m->lock.word) & FG_WORD_ID) == t->id;
}

static int type_of(const struct fg_mutex *m)
{
	return m->kind & FG_KIND_TYPE;
}

static int lock_again(struct fg_mutex *m)
{
	if (m->count == UINT32_MAX)
		return EAGAIN;
	m->count++;
	return 0;
}

int fg_mutex_lock_typed(struct fg_mutex *m, struct fg_self *t, const struct fg_deadline *deadline)
{
	if (owned_by(m, t))
		return type_of(m) == FG_KIND_RECURSIVE ? lock_again(m) : EDEADLK;
	return fg_lock_until(&m->lock, t, deadline);
}

int fg_mutex_trylock_typed(struct fg_mutex *m, struct fg_self *t)
{
	if (type_of(m) == FG_KIND_RECURSIVE && owned_by(m, t))
		return lock_again(m);
	return fg_trylock(&m->lock, t) ? 0 : EBUSY;
}

int fg_mutex_unlock_typed(struct fg_mutex *m, struct fg_self *t)
{
	if (!owned_by(m, t))
		return EPERM;
	if (m->count) {
		m->count--;
		return 0;
	}
	fg_unlock(&m->lock, t);
	return 0;
}
