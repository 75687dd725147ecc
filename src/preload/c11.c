/* SPDX-License-Identifier: MIT */
/*
 * C11's mtx_* and cnd_*: other names and results for the same objects.  glibc's
 * own call its internal mutex functions, so both families stand here or neither
 * could.  ISO C11 7.26.3, 7.26.4; the types have the layout of pthread's.
 */
#include "preload/preload.h"

#include <errno.h>
#include <threads.h>

FG_EXPORT(mtx_init);
FG_EXPORT(mtx_destroy);
FG_EXPORT(mtx_lock);
FG_EXPORT(mtx_trylock);
FG_EXPORT(mtx_timedlock);
FG_EXPORT(mtx_unlock);
FG_EXPORT(cnd_init);
FG_EXPORT(cnd_destroy);
FG_EXPORT(cnd_wait);
FG_EXPORT(cnd_timedwait);
FG_EXPORT(cnd_signal);
FG_EXPORT(cnd_broadcast);

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t),
	       "in place");

static pthread_mutex_t *mutex_of(mtx_t *m)
{
	return (pthread_mutex_t *)m;
}

static pthread_cond_t *cond_of(cnd_t *c)
{
	return (pthread_cond_t *)c;
}

static int result(int err)
{
	switch (err) {
	case 0: return thrd_success;
	case EBUSY: return thrd_busy;
	case ETIMEDOUT: return thrd_timedout;
	case ENOMEM: return thrd_nomem;
	default: return thrd_error;
	}
}

int mtx_init(mtx_t *m, int type)
{
	struct fg_mutex *mutex = fg_mutex_of(mutex_of(m));

	_fg_mutex_is_made(mutex);
	/* As in glibc, with any other bit it is a plain one. */
	*mutex = (struct fg_mutex){
	    .lock.tag = (type & ~mtx_timed) == mtx_recursive ? FG_KIND_RECURSIVE : FG_KIND_NORMAL};
	return thrd_success;
}

void mtx_destroy(mtx_t *m)
{
	pthread_mutex_destroy(mutex_of(m));
}

int mtx_lock(mtx_t *m)
{
	return result(pthread_mutex_lock(mutex_of(m)));
}

int mtx_trylock(mtx_t *m)
{
	return result(pthread_mutex_trylock(mutex_of(m)));
}

int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict at)
{
	return result(pthread_mutex_timedlock(mutex_of(m), at));
}

int mtx_unlock(mtx_t *m)
{
	return result(pthread_mutex_unlock(mutex_of(m)));
}

int cnd_init(cnd_t *c)
{
	return result(pthread_cond_init(cond_of(c), NULL));
}

void cnd_destroy(cnd_t *c)
{
	pthread_cond_destroy(cond_of(c));
}

int cnd_wait(cnd_t *c, mtx_t *m)
{
	return result(pthread_cond_wait(cond_of(c), mutex_of(m)));
}

int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict at)
{
	return result(pthread_cond_timedwait(cond_of(c), mutex_of(m), at));
}

int cnd_signal(cnd_t *c)
{
	return result(pthread_cond_signal(cond_of(c)));
}

int cnd_broadcast(cnd_t *c)
{
	return result(pthread_cond_broadcast(cond_of(c)));
}
