/* SPDX-License-Identifier: MIT */
/*
 * What adaptors call for a rwlock: the one that FLEXGUARD_LOCK names; if it names a mutex,
 * lock/rwlock.h.
 */
#include "zoo/rwlock.h"

#include <errno.h>

#include "rwlock_ours.h"
#include "zoo/choose.h"

static __thread bool too_many;

bool zoo_rwlock_too_many(void)
{
	too_many = true;
	return false;
}

/* NULL: the product's. */
static const struct zoo_rwlock_ops *ops(void)
{
	return zoo_chosen()->rwlock;
}

bool _fg_rwlock_may_be_shared(void)
{
	return zoo_chosen()->rwlock_can & ZOO_SHARED;
}

static struct zoo_rwlock *of(struct fg_rwlock *rw)
{
	return (struct zoo_rwlock *)rw;
}

static int failed(void)
{
	bool full = too_many;

	too_many = false;
	return full ? EAGAIN : ETIMEDOUT;
}

static int rdlock(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	if (zoo_rwlock_writes(of(rw)) && of(rw)->writer == zoo_tid())
		return EDEADLK;
	return ops()->rdlock(of(rw), deadline) ? 0 : failed();
}

static int written(struct zoo_rwlock *l)
{
	fg_store_relaxed(&l->writer, zoo_tid());
	return 0;
}

static int wrlock(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	if (zoo_rwlock_writes(of(rw)) && of(rw)->writer == zoo_tid())
		return EDEADLK;
	return ops()->wrlock(of(rw), deadline) ? written(of(rw)) : failed();
}

static int traced(int (*lock)(struct fg_rwlock *, const struct fg_deadline *), struct fg_rwlock *rw,
		  const struct fg_deadline *deadline, const void *caller)
{
	struct fg_traced t;
	int r;

	if (!fg_is_traced())
		return lock(rw, deadline);
	t = fg_trace_begins();
	r = lock(rw, deadline);
	fg_trace_ends(&t, rw, caller);
	return r;
}

/* The zoo's own say nothing of their threads. */
void _fg_chosen_rwlock_destroy(struct fg_rwlock *rw)
{
	if (!ops())
		_fg_rwlock_destroy(rw);
}

int _fg_chosen_rwlock_rdlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller)
{
	return ops() ? traced(rdlock, rw, deadline, caller) :
		       _fg_rwlock_rdlock(rw, deadline, caller);
}

int _fg_chosen_rwlock_wrlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller)
{
	return ops() ? traced(wrlock, rw, deadline, caller) :
		       _fg_rwlock_wrlock(rw, deadline, caller);
}

int _fg_chosen_rwlock_tryrdlock(struct fg_rwlock *rw)
{
	if (!ops())
		return _fg_rwlock_tryrdlock(rw);
	return ops()->tryrd(of(rw)) ? 0 : EBUSY;
}

int _fg_chosen_rwlock_trywrlock(struct fg_rwlock *rw)
{
	if (!ops())
		return _fg_rwlock_trywrlock(rw);
	return ops()->trywr(of(rw)) ? written(of(rw)) : EBUSY;
}

int _fg_chosen_rwlock_unlock(struct fg_rwlock *rw)
{
	struct zoo_rwlock *l = of(rw);

	if (!ops())
		return _fg_rwlock_unlock(rw);
	if (!zoo_rwlock_writes(l)) {
		ops()->rdunlock(l);
		return 0;
	}
	fg_store_relaxed(&l->writer, 0);
	ops()->wrunlock(l);
	return 0;
}
