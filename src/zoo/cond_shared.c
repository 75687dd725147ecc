/* SPDX-License-Identifier: MIT */
#include "zoo/cond_shared.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>

#include "arch/arch.h"
#include "runtime/count.h"
#include "sys/cleanup.h"
#include "sys/libc.h"

struct shared_wait {
	struct fg_cond_shared *cond;
	const struct fg_cond_mutex *mutex;
	bool let_go; /* of the mutex */
};

static void wake(struct fg_cond_shared *c, int count)
{
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	fg_futex_wake_shared(&c->signals, count);
}

/* Release: pairs with the acquire in _fg_cond_shared_destroy(); the last touch. */
static void leave(struct fg_cond_shared *c)
{
	__atomic_fetch_sub(&c->waiters, 1, __ATOMIC_RELEASE);
}

/* POSIX: a thread that is cancelled consumes no signal that others wait for. */
static void cancelled(void *arg)
{
	struct shared_wait *w = arg;

	wake(w->cond, 1);
	leave(w->cond);
	if (w->let_go)
		w->mutex->lock(w->mutex->mutex);
}

static int wait_for_count(struct fg_cond_shared *c, const struct fg_cond_mutex *m,
			  const struct fg_deadline *deadline)
{
	struct shared_wait w = {.cond = c, .mutex = m};
	uint32_t seen;
	int r, woken = 0;

	__atomic_fetch_add(&c->waiters, 1, __ATOMIC_RELAXED);
	fg_cleanup_push(cancelled, &w);
	/* Before the mutex is released: a signal of its next owner is not seen yet. */
	seen = fg_load_relaxed(&c->signals);
	r = m->unlock(m->mutex);
#ifdef FG_BROKEN_COND_SHARED /* a test proves that the tests notice; kept off its CPU here */
	poll(NULL, 0, 1);
	seen = fg_load_relaxed(&c->signals);
#endif
	if (!r) {
		fg_store_relaxed(&w.let_go, true);
		fg_fence_local();
		fg_count(fg_self(), FG_STAT_COND_WAITS, 1);
		do
			woken = fg_futex_wait_shared_cancellable(&c->signals, seen, deadline);
		while (woken == -EINTR);
	}
	fg_cleanup_pop(0);
	if (!r && woken == 0 && fg_load_relaxed(&c->signals) == seen)
		wake(c, 1);
	leave(c);
	if (!r)
		r = m->lock(m->mutex);
	return r ? r : woken == -ETIMEDOUT ? ETIMEDOUT : 0;
}

int _fg_cond_shared_wait(struct fg_cond_shared *c, const struct fg_cond_mutex *m,
			 const struct fg_deadline *deadline)
{
	int type, r;

	/* Asynchronously it is cancelled asleep, and at the end, as with ours. */
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_DEFERRED, &type);
	r = wait_for_count(c, m, deadline);
	fg_libc_pthread_setcanceltype()(type, NULL);
	return r;
}

void _fg_cond_shared_wake(struct fg_cond_shared *c, bool all)
{
	/* A waiter that the caller can know of has counted itself before it released its mutex. */
	if (!fg_load_relaxed(&c->waiters))
		return;
	__atomic_fetch_add(&c->signals, 1, __ATOMIC_RELAXED);
	wake(c, all ? INT_MAX : 1);
}

void _fg_cond_shared_destroy(struct fg_cond_shared *c)
{
	struct fg_deadline soon;
	uint32_t never = 0;

	/* Acquire: pairs with leave(). */
	while (fg_load_acquire(&c->waiters)) {
		fg_deadline_in(&soon, FG_COND_DRAIN_NS);
		fg_futex_wait(&never, 0, FG_FUTEX_ANY, &soon);
	}
}
