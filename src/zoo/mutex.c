/* SPDX-License-Identifier: MIT */
/*
 * lock/mutex.h over the lock that was chosen (choose.h): types of mutexes, and deadlines for locks
 * that have none.  In libflexguard-zoo.so this file stands where src/lock/mutex.c does elsewhere.
 */
#include "lock/mutex.h"

#include <errno.h>
#include "zoo/choose.h"
#include "zoo/fork.h"

_Static_assert(sizeof(struct zoo_mutex) == sizeof(struct fg_mutex) &&
		   offsetof(struct zoo_mutex, kind) == offsetof(struct fg_mutex, lock.tag),
	       "in place");

static struct zoo_mutex *of(struct fg_mutex *m)
{
	return (struct zoo_mutex *)m;
}

bool _fg_mutex_may_be_shared(void)
{
	return zoo_chosen()->lock_can & ZOO_SHARED;
}

/* Where glibc's mutexes have their owner, most locks have something of their own. */
void _fg_mutex_shows(ptrdiff_t tid_place)
{
}

/* ---- types --------------------------------------------------------------------- */

static const struct zoo_lock *ready(struct zoo_mutex *m)
{
	const struct zoo_lock *z = zoo_chosen()->lock;

	if (zoo_is_parents(m))
		zoo_renew(m, z);
	return z;
}

static bool owned(const struct zoo_mutex *m)
{
	return fg_load_relaxed(&m->owner) == zoo_tid();
}

static void acquired(struct zoo_mutex *m)
{
	fg_store_relaxed(&m->owner, zoo_tid());
}

/* A lock that cannot be left once one has queued for it is asked again and again instead. */
static bool lock_by_polling(const struct zoo_lock *z, struct zoo_mutex *m,
			    const struct fg_deadline *deadline)
{
	while (!z->trylock(m)) {
		if (fg_deadline_passed(deadline))
			return false;
		fg_syscall6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	return true;
}

int _fg_mutex_lock_untraced(struct fg_mutex *mutex, const struct fg_deadline *deadline)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibcs)
		return zoo_glibc_lock(m, z, deadline);
	if (_fg_kind_knows_owner(m->kind) && owned(m))
		return _fg_kind_is_recursive(m->kind) ? _fg_mutex_count_again(&m->count) : EDEADLK;
	if (z->untried || !(z->first ? z->first : z->trylock)(m)) {
		if (!z->untried)
			fg_count_contended(fg_self());
		if (deadline && !(zoo_chosen()->lock_can & ZOO_TIMED)) {
			if (!lock_by_polling(z, m, deadline))
				return ETIMEDOUT;
		} else if (!z->lock(m, deadline)) {
			return ETIMEDOUT;
		}
	}
	acquired(m);
	return 0;
}

int _fg_mutex_trylock(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibcs)
		return zoo_glibc_try(m, z);
	if (_fg_kind_is_recursive(m->kind) && owned(m))
		return _fg_mutex_count_again(&m->count);
	if (!z->trylock(m))
		return EBUSY;
	acquired(m);
	return 0;
}

static int release(struct zoo_mutex *m, const struct zoo_lock *z,
		   void (*unlock)(struct zoo_mutex *m))
{
	if (_fg_kind_knows_owner(m->kind)) {
		if (!owned(m))
			return EPERM;
		if (m->count) {
			m->count--;
			return 0;
		}
	} else if (fg_unlikely(!fg_load_relaxed(&m->owner))) {
		/* nobody holds it: undefined in POSIX, nothing in glibc, a lost node in a queue */
		return 0;
	}
	fg_store_relaxed(&m->owner, 0);
	unlock(m);
	return 0;
}

int _fg_mutex_unlock(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	return z->glibcs ? zoo_glibc_unlock(m, z) : release(m, z, z->unlock);
}

/* ---- what a program may choose (choices.h) ---- */

int zoo_release_fairly(struct zoo_mutex *m)
{
	const struct zoo_lock *z = ready(m);

	return z->unlock_fairly ? release(m, z, z->unlock_fairly) : ENOTSUP;
}

int zoo_set_spin(struct zoo_mutex *m, uint32_t ns)
{
	if (!zoo_chosen()->lock->spins)
		return ENOTSUP;
	fg_store_relaxed(&m->holder, ns ? ns : 1);
	return 0;
}

/* Here nothing has a short way past _fg_mutex_unlock(). */
int _fg_mutex_unlock_slow(struct fg_mutex *m)
{
	return _fg_mutex_unlock(m);
}

int _fg_mutex_destroy(struct fg_mutex *mutex)
{
	struct zoo_mutex *m = of(mutex);
	const struct zoo_lock *z = ready(m);

	if (z->glibcs)
		return zoo_glibc_end(m, z);
	if (fg_load_relaxed(&m->owner))
		return EBUSY;
	if (z->end)
		z->end(m);
	m->kind = ~0u; /* as glibc does */
	return 0;
}
