/* SPDX-License-Identifier: MIT */
/*
 * What adaptors call for a condition variable: that of the lock that FLEXGUARD_LOCK names; if it
 * has none, lock/cond.h.
 *
 * The BPF Hybrid Lock's (ticketcond.h): its waiters are awake as long as their mutex spins, and
 * asleep as long as it blocks.  Ours: a waiter may be cancelled or time out, a
 * destroyer waits for waiters on their way out, and, as the paper's future work has it (IV.B), the
 * signaller is watched: in the midst of a signal it counts as critical, and waiters that find the
 * latest signaller preempted switch to blocking.
 */
#include "cond_ours.h"

#include <errno.h>
#include <pthread.h>

#include "lock/epoch.h"
#include "runtime/count.h"
#include "sys/cleanup.h"
#include "sys/libc.h"
#include "zoo/choose.h"
#include "zoo/hybrid.h"
#include "zoo/ticketcond.h"

#define SPIN_LOOK_EVERY 64u /* rounds of one that spins; not varied */

/* In place of struct fg_cond. */
struct ticket_cond {
	struct zoo_ticket_cond t;
	uint32_t inside;    /* waiters that will still touch it; atomic */
	uint32_t signaller; /* id of the thread that has signalled last */
	uint32_t unused[4];
	uint32_t epoch, flags; /* its place and values */
	void *more;
};
_Static_assert(sizeof(struct ticket_cond) == sizeof(struct fg_cond) &&
		   offsetof(struct ticket_cond, epoch) == offsetof(struct fg_cond, epoch) &&
		   offsetof(struct ticket_cond, flags) == offsetof(struct fg_cond, flags),
	       "in place");

/* In the child of a fork the numbers are those of threads of the parent. */
static void forget_numbers(void *cond)
{
	struct ticket_cond *c = cond;

	c->t = (struct zoo_ticket_cond){0};
	c->inside = c->signaller = 0;
}

static struct ticket_cond *of(struct fg_cond *cond)
{
	struct ticket_cond *c = (struct ticket_cond *)cond;

	if (fg_unlikely(fg_load_acquire(&c->epoch) != fg_epoch))
		_fg_enter_epoch(&c->epoch, forget_numbers, c);
	return c;
}

/* Not for a child's, in memory that both share: the product knows what to do then. */
static bool is_ticket(const struct fg_cond *cond)
{
	return zoo_chosen()->lock->ticket_cond && fg_likely(!_fg_cond_is_a_childs(cond));
}

struct ticket_wait {
	struct ticket_cond *cond;
	const struct fg_cond_mutex *mutex;
	uint32_t number;
	bool let_go; /* of the mutex */
};

/* The last touch. */
static void leave(struct ticket_cond *c)
{
	/* pairs with the acquire in _fg_chosen_cond_destroy() */
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_RELEASE);
}

/* It consumes no signal that others wait for. */
static void gives_up(struct ticket_wait *w)
{
	if (!zoo_ticket_leave(&w->cond->t, w->number))
		zoo_ticket_signal(&w->cond->t);
	leave(w->cond);
}

static void ticket_cancelled(void *arg)
{
	struct ticket_wait *w = arg;

	gives_up(w);
	if (w->let_go)
		w->mutex->lock(w->mutex->mutex);
}

/* A cancellation point, as fg_futex_wait_cancellable(), in the channel of the number. */
static int sleep_for(struct ticket_wait *w, uint32_t seq, const struct fg_deadline *deadline)
{
	int op = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, type, r;

	if (fg_deadline_passed(deadline)) { /* the kernel knows no time before the epoch */
		fg_testcancel();
		return -ETIMEDOUT;
	}
	if (deadline && deadline->clock == CLOCK_REALTIME)
		op |= FUTEX_CLOCK_REALTIME;
	fg_count(fg_self(), FG_STAT_COND_WAITS, 1);
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	r = (int)fg_syscall6_called(SYS_futex, (long)&w->cond->t.seq, op, seq,
				    (long)(deadline ? &deadline->at : NULL), 0,
				    1u << w->number % 32);
	fg_libc_pthread_setcanceltype()(type, NULL);
	return r;
}

/* While the mutex is a spinlock.  A mutex of glibc's is none. */
static bool spins(const struct fg_mutex *mutex)
{
	return mutex && curr_of(fg_load_relaxed(state_of((struct zoo_mutex *)mutex))) == SPIN;
}

/* Now and then, of one that spins.  False: out of time. */
static bool look(struct ticket_wait *w, const struct fg_deadline *deadline)
{
	fg_testcancel();
	if (fg_deadline_passed(deadline))
		return false;
	zoo_hybrid_switch_for_signal((struct zoo_mutex *)w->mutex->ours,
				     fg_load_relaxed(&w->cond->signaller));
	return true;
}

/* Until the number is called.  False: out of time before. */
static bool await(struct ticket_wait *w, const struct fg_deadline *deadline)
{
	struct zoo_ticket_cond *t = &w->cond->t;
	struct fg_mutex *mutex = w->mutex->ours;
	uint32_t seq;

	for (uint32_t n = 1; !ZOO_CALLED(t, w->number); n++) {
		if (spins(mutex)) {
			if (n % SPIN_LOOK_EVERY == 0 && !look(w, deadline))
				return false;
			zoo_pause();
			continue;
		}
		/* Of a lock that blocks: is it calm by now? */
		if (mutex)
			zoo_hybrid_switch_for_signal((struct zoo_mutex *)mutex,
						     fg_load_relaxed(&w->cond->signaller));
		seq = fg_load_relaxed(&t->seq);
		if ((int32_t)(seq - w->number) < 0 && sleep_for(w, seq, deadline) == -ETIMEDOUT)
			return false;
	}
	return true;
}

static int ticket_wait(struct ticket_cond *c, const struct fg_cond_mutex *m,
		       const struct fg_deadline *deadline)
{
	struct ticket_wait w = {.cond = c, .mutex = m};
	bool in_time = false;
	int r;

	fg_add_relaxed(&c->inside, 1);
	w.number = zoo_ticket_draw(&c->t);
	fg_cleanup_push(ticket_cancelled, &w);
	r = m->unlock(m->mutex);
	if (!r) {
		fg_store_relaxed(&w.let_go, true);
		fg_fence_local();
		in_time = await(&w, deadline);
	}
	fg_cleanup_pop(0);
	if (r) {
		gives_up(&w);
		return r;
	}
	if (!in_time)
		in_time = !zoo_ticket_leave(&c->t, w.number); /* called after all */
	leave(c);
	r = m->lock(m->mutex);
	return r ? r : in_time ? 0 : ETIMEDOUT;
}

int _fg_chosen_cond_wait(struct fg_cond *cond, const struct fg_cond_mutex *m,
			 const struct fg_deadline *deadline)
{
	int type, r;

	if (!is_ticket(cond))
		return _fg_cond_wait(cond, m, deadline);
	/* Asynchronously it is cancelled asleep, and at the end, as with ours. */
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_DEFERRED, &type);
	r = ticket_wait(of(cond), m, deadline);
	fg_libc_pthread_setcanceltype()(type, NULL);
	return r;
}

static void wake(struct fg_cond *cond, void (*call)(struct zoo_ticket_cond *))
{
	struct ticket_cond *c = of(cond);
	struct fg_self *t;

	if ((int32_t)(fg_load_relaxed(&c->t.target) - fg_load_relaxed(&c->t.seq)) <= 0)
		return;
	t = fg_self();
	fg_store_relaxed(&c->signaller, t->id);
	fg_section_enter(t);
	call(&c->t); /* afterwards it may be gone */
	fg_section_leave(t);
}

void _fg_chosen_cond_signal(struct fg_cond *cond)
{
	if (is_ticket(cond))
		wake(cond, zoo_ticket_signal);
	else
		_fg_cond_signal(cond);
}

void _fg_chosen_cond_broadcast(struct fg_cond *cond)
{
	if (is_ticket(cond))
		wake(cond, zoo_ticket_broadcast);
	else
		_fg_cond_broadcast(cond);
}

void _fg_chosen_cond_destroy(struct fg_cond *cond)
{
	if (!is_ticket(cond)) {
		_fg_cond_destroy(cond);
		return;
	}
	while (fg_load_acquire(&of(cond)->inside))
		zoo_sleep_ns(FG_COND_DRAIN_NS);
}
