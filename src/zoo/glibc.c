/* SPDX-License-Identifier: MIT */
/*
 * Glibc's own mutexes of other kinds than the program asked for: what would it be like if they were
 *
 *   glibc-mutex      the default kind, beside condition variables that are not glibc's: what the
 *                    zoo's mutexes are measured against in a program that waits by such a one
 *   glibc-adaptive   PTHREAD_MUTEX_ADAPTIVE_NP: spins for a while that it learns, then blocks
 *   glibc-robust     PTHREAD_MUTEX_ROBUST: recovers from an owner that died (set_robust_list(2));
 *                    the zoo makes what it finds consistent, since the program does not know
 *   glibc-pi         PTHREAD_PRIO_INHERIT: the kernel orders waiters by priority, and boosts the
 *                    owner
 *
 * Done at the first lock.  Types other than the default one stay what they are.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>

#include "lock/mutex.h"
#include "preload/native.h"
#include "zoo/fork.h"

/* Between two looks at whether the thread that forked has come.  Not varied. */
#define PARENTS_SLEEP_NS 100000u

static pthread_mutex_t *as_glibcs(struct zoo_mutex *m, const struct zoo_lock *z)
{
	uint32_t kind = fg_load_relaxed(&m->kind), want;

	/* Nobody has locked it before it is of this kind: all ways in lead here. */
	while (!(kind & FG_KIND_ZOO)) {
		want = kind | FG_KIND_ZOO;
		if (!(kind & FG_KIND_TYPE) || z->glibc_kind != FG_KIND_ADAPTIVE)
			want |= z->glibc_kind;
		if (want & FG_KIND_ZOO_SHARED)
			want |= FG_KIND_SHARED;
		if (fg_cas_relaxed(&m->kind, &kind, want))
			break;
	}
	return (pthread_mutex_t *)m;
}

/* What a program that asked for no robust mutex expects. */
static int recover(pthread_mutex_t *m, int r)
{
	if (r == EOWNERDEAD)
		r = fg_native_pthread_mutex_consistent()(m);
	return r;
}

/* Robust and PI ones of type errorcheck say EDEADLK to their owner; others EBUSY. */
int zoo_glibc_try(struct zoo_mutex *mutex, const struct zoo_lock *z)
{
	pthread_mutex_t *m = as_glibcs(mutex, z);
	int r = recover(m, fg_native_pthread_mutex_trylock()(m));

	return r == EDEADLK ? EBUSY : r;
}

int zoo_glibc_lock(struct zoo_mutex *mutex, const struct zoo_lock *z,
		   const struct fg_deadline *deadline)
{
	pthread_mutex_t *m = as_glibcs(mutex, z);
	int r;

	/* Its word is not one to sleep on yet (zoo_glibc_renew). */
	while (zoo_is_parents(mutex) && !zoo_is_shared(mutex)) {
		if (fg_deadline_passed(deadline))
			return ETIMEDOUT;
		zoo_sleep_ns(PARENTS_SLEEP_NS);
	}
	if (!deadline)
		return recover(m, fg_native_pthread_mutex_lock()(m));
	r = fg_native_pthread_mutex_clocklock()(m, deadline->clock, &deadline->at);
	/* Before 1970: the kernel says EINVAL to FUTEX_LOCK_PI. */
	return r == EINVAL && fg_deadline_passed(deadline) ? ETIMEDOUT : recover(m, r);
}

/* Glibc destroys a robust one that is held. */
int zoo_glibc_end(struct zoo_mutex *mutex, const struct zoo_lock *z)
{
	pthread_mutex_t *m = as_glibcs(mutex, z);

	return m->__data.__lock & FUTEX_TID_MASK ? EBUSY : fg_native_pthread_mutex_destroy()(m);
}

int zoo_glibc_unlock(struct zoo_mutex *mutex, const struct zoo_lock *z)
{
	return fg_native_pthread_mutex_unlock()(as_glibcs(mutex, z));
}

static bool knows_owner(uint32_t kind)
{
	return _fg_kind_knows_owner(kind) || kind & (FG_KIND_ROBUST | FG_KIND_INHERIT);
}

/*
 * A child's copy of one that was held (fork, mutex.c).  Whoever locks it again is its owner: that
 * is the thread that forked, the child's first.  Another one finds it held, as it is, until then.
 */
bool zoo_glibc_renew(struct zoo_mutex *m)
{
	bool held = m->s.u32[0] & FUTEX_TID_MASK;
	uint32_t *count = &m->s.u32[1], was = *count; /* glibc's place */

	if (held && knows_owner(m->kind) &&
	    zoo_tid() != (uint32_t)fg_syscall6(SYS_getpid, 0, 0, 0, 0, 0, 0))
		return false;
	m->s.u64[0] = m->s.u64[1] = 0;
	m->owner = m->count = m->holder = 0;
	m->node = NULL;
	if (held) {
		fg_native_pthread_mutex_lock()((pthread_mutex_t *)m);
		*count = was;
	}
	return true;
}

const struct zoo_lock zoo_plain = {.glibcs = true};
const struct zoo_lock zoo_adaptive = {.glibcs = true, .glibc_kind = FG_KIND_ADAPTIVE};
const struct zoo_lock zoo_robust = {.glibcs = true, .glibc_kind = FG_KIND_ROBUST};
const struct zoo_lock zoo_pi = {.glibcs = true, .glibc_kind = FG_KIND_INHERIT};
