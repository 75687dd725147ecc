/* SPDX-License-Identifier: MIT */
/*
 * lock/rwlock.h over the reader-writer lock that FLEXGUARD_LOCK names; if it names a mutex, over the
 * product's.  In libflexguard-zoo.so this file stands where src/lock/rwlock.c does elsewhere.
 */
#define _fg_rwlock_rdlock_untraced	product_rdlock_until
#define _fg_rwlock_wrlock_untraced	product_wrlock_until
#define _fg_rwlock_rdlock_traced product_rdlock_traced
#define _fg_rwlock_wrlock_traced product_wrlock_traced
#define _fg_rwlock_tryrdlock		product_tryrd
#define _fg_rwlock_trywrlock		product_trywr
#define _fg_rwlock_unlock	product_release
#include "lock/rwlock.c"
#undef _fg_rwlock_rdlock_untraced
#undef _fg_rwlock_wrlock_untraced
#undef _fg_rwlock_rdlock_traced
#undef _fg_rwlock_wrlock_traced
#undef _fg_rwlock_tryrdlock
#undef _fg_rwlock_trywrlock
#undef _fg_rwlock_unlock

#include <stdlib.h>
#include <string.h>

#include "zoo/rwlock.h"

/* As lock/rwlock.h has them. */
int _fg_rwlock_rdlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline);
int _fg_rwlock_wrlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline);
int _fg_rwlock_rdlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline, const void *caller);
int _fg_rwlock_wrlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline, const void *caller);
int _fg_rwlock_tryrdlock(struct fg_rwlock *rw);
int _fg_rwlock_trywrlock(struct fg_rwlock *rw);
int _fg_rwlock_unlock(struct fg_rwlock *rw);

static const struct {
	const char *name;
	const struct zoo_rwlock_ops *ops;
	unsigned can;
} rwlocks[] = {
#define ZOO(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) {name, &zoo_##id, can},
    ZOO_RWLOCK_TABLE(ZOO)
#undef ZOO
};

/* Of the chosen one. */
static unsigned can;

static __thread bool too_many;

bool zoo_rwlock_too_many(void)
{
	too_many = true;
	return false;
}

/* NULL: the product's. */
static const struct zoo_rwlock_ops *ops(void)
{
	static const struct zoo_rwlock_ops *chosen;
	static bool known;
	const char *name;

	if (fg_likely(__atomic_load_n(&known, __ATOMIC_ACQUIRE)))
		return chosen;
	name = secure_getenv(FG_LOCK_ENV);
	for (size_t i = 0; name && i < sizeof(rwlocks) / sizeof(rwlocks[0]); i++)
		if (!strcmp(name, rwlocks[i].name))
			chosen = rwlocks[i].ops, fg_store_relaxed(&can, rwlocks[i].can);
	__atomic_store_n(&known, true, __ATOMIC_RELEASE);
	return chosen;
}

bool _fg_rwlock_may_be_shared(void)
{
	return ops() && can & ZOO_SHARED;
}

int zoo_rwlock_wait(struct zoo_rwlock *l, uint32_t *word, uint32_t value, const struct fg_deadline *deadline)
{
	if (fg_likely(!(l->kind & FG_RW_OURS_SHARED)))
		return fg_futex_wait(word, value, FG_FUTEX_ANY, deadline);
	return fg_futex_wait_shared(word, value, deadline);
}

int zoo_rwlock_wake(struct zoo_rwlock *l, uint32_t *word, int count)
{
	if (fg_likely(!(l->kind & FG_RW_OURS_SHARED)))
		return fg_futex_wake(word, count, FG_FUTEX_ANY);
	return fg_futex_wake_shared(word, count);
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

int _fg_rwlock_rdlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	if (!ops())
		return product_rdlock_until(rw, deadline);
	if (zoo_rwlock_writes(of(rw)) && of(rw)->writer == zoo_tid())
		return EDEADLK;
	return ops()->rdlock(of(rw), deadline) ? 0 : failed();
}

static int written(struct zoo_rwlock *l)
{
	fg_store_relaxed(&l->writer, zoo_tid());
	return 0;
}

int _fg_rwlock_wrlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	if (!ops())
		return product_wrlock_until(rw, deadline);
	if (zoo_rwlock_writes(of(rw)) && of(rw)->writer == zoo_tid())
		return EDEADLK;
	return ops()->wrlock(of(rw), deadline) ? written(of(rw)) : failed();
}

int _fg_rwlock_rdlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline, const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_rwlock_rdlock_untraced(rw, deadline);

	fg_trace_ends(&t, rw, caller);
	return r;
}

int _fg_rwlock_wrlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline, const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_rwlock_wrlock_untraced(rw, deadline);

	fg_trace_ends(&t, rw, caller);
	return r;
}

int _fg_rwlock_tryrdlock(struct fg_rwlock *rw)
{
	if (!ops())
		return product_tryrd(rw);
	return ops()->tryrd(of(rw)) ? 0 : EBUSY;
}

int _fg_rwlock_trywrlock(struct fg_rwlock *rw)
{
	if (!ops())
		return product_trywr(rw);
	return ops()->trywr(of(rw)) ? written(of(rw)) : EBUSY;
}

int _fg_rwlock_unlock(struct fg_rwlock *rw)
{
	struct zoo_rwlock *l = of(rw);

	if (!ops())
		return product_release(rw);
	if (!zoo_rwlock_writes(l)) {
		ops()->rdunlock(l);
		return 0;
	}
	fg_store_relaxed(&l->writer, 0);
	ops()->wrunlock(l);
	return 0;
}
