/* SPDX-License-Identifier: MIT */
#include "lock/cond.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "arch/arch.h"
#include "lock/epoch.h"
#include "runtime/count.h"
#include "runtime/decide.h"
#include "sys/cleanup.h"
#include "sys/libc.h"

enum { WAITING = 0, ASLEEP = 1, SIGNALED = 2, LAST = 3, GONE = 4 };

_Static_assert(offsetof(struct fg_cond, flags) == 36 &&
		   offsetof(struct fg_cond, first) + 4 == FG_COND_FLAGS_AT &&
		   _Alignof(struct fg_waiter) > FG_COND_GLIBC,
	       "glibc marks process-shared ones there");

/* How often a waiter that nobody can wake looks for itself.  Not varied. */
#define SPURIOUS_NS 1000000u

/* In the child of a fork the lock may be held, and the list filled, by threads of the parent. */
static void forget(void *cond)
{
	struct fg_cond *c = cond;

	c->lock = (struct fg_lock){0};
	_fg_cond_set_first(c, NULL);
	c->last = NULL;
}

static void cond_lock(struct fg_cond *c)
{
	if (fg_unlikely(fg_load_acquire(&c->epoch) != fg_epoch))
		_fg_enter_epoch(&c->epoch, forget, c);
	_fg_lock(&c->lock);
}

/* A thread that releases this lock has no reason to be back soon: it leaves nobody asleep. */
static void cond_unlock(struct fg_cond *c)
{
	_fg_lock_going_away(&c->lock);
	_fg_unlock(&c->lock);
	_fg_lock_gone_away();
}

static void list_append(struct fg_cond *c, struct fg_waiter *n)
{
	n->next = NULL;
	n->prev = c->last;
	if (c->last)
		c->last->next = n;
	else
		_fg_cond_set_first(c, n);
	c->last = n;
}

static void list_remove(struct fg_cond *c, struct fg_waiter *prev, struct fg_waiter *next)
{
	if (prev)
		prev->next = next;
	else
		_fg_cond_set_first(c, next);
	if (next)
		next->prev = prev;
	else
		c->last = prev;
}

/*
 * The spin history of those who wait here, written by the signaller: a waiter must not
 * touch the condition variable any more when it knows whether its spin was in vain.
 */
static void add_to_history(struct fg_cond *c, bool spun, bool in_time)
{
	uint32_t flags = fg_load_relaxed(&c->flags);
	fg_spin_history had = (fg_spin_history)(flags >> FG_COND_HISTORY);
	fg_spin_history now = fg_spin_history_after(had, spun, in_time);

	if (now != had)
		fg_store_relaxed(&c->flags,
				 (flags & FG_COND_GLIBC) | (uint32_t)now << FG_COND_HISTORY);
}

enum given { NOT_GIVEN, TO_SPINNER, TO_SLEEPER };

/* The waiter's signal, if it still waits.  Its stack may be gone afterwards. */
static enum given give(struct fg_cond *c, struct fg_waiter *n, uint32_t signal)
{
	/* Acquire: pairs with the release in spin_for_signal(), for n->spun. */
	uint32_t state = fg_load_acquire(&n->word);

	while (state == WAITING || state == ASLEEP) {
		bool spun = state == ASLEEP && n->spun;

		/* Release: the waiter sees all that we did. */
		if (fg_cas_acq_rel(&n->word, &state, signal)) {
#ifdef FG_BROKEN_HISTORY /* a test proves that the tests notice */
			spun = n->spun;
#endif
			add_to_history(c, spun, state == WAITING);
			return state == WAITING ? TO_SPINNER : TO_SLEEPER;
		}
	}
	return NOT_GIVEN;
}

/* A thread of a real-time policy has waited behind others, or others behind it. */
static bool priorities_matter;

static uint8_t priority_of(struct fg_waiter *n)
{
	if (n->priority == FG_PRIORITY_UNASKED)
		n->priority = fg_real_time_priority(fg_self(), n->tid);
	return n->priority;
}

/*
 * Of those that sleep the one with the highest real-time priority, and of equals the first, as if
 * the kernel had the list (POSIX leaves the order to the scheduling policy).  NULL: none waits.
 */
static struct fg_waiter *most_urgent(const struct fg_cond *c)
{
	struct fg_waiter *best = NULL;
	uint8_t highest = 0;

	for (struct fg_waiter *n = _fg_cond_first(c); n; n = n->next) {
		/* Acquire: pairs with the release in spin_for_signal(), for n->priority. */
		uint32_t state = fg_load_acquire(&n->word);
		uint8_t priority = state == ASLEEP ? priority_of(n) : 0;

		if ((state == WAITING || state == ASLEEP) && (!best || priority > highest)) {
			best = n;
			highest = priority;
		}
	}
	return best;
}

/*
 * Takes out the first waiter that still waits, or the most urgent one, and gives it the signal;
 * *asleep: it has to be woken by the caller.  Those that go by themselves stay until they take
 * themselves out.
 */
static struct fg_waiter *signal_first(struct fg_cond *c, bool broadcast, bool *asleep)
{
	bool urgent = !broadcast && fg_load_relaxed(&priorities_matter);
	struct fg_waiter *n, *next;

	for (n = urgent ? most_urgent(c) : _fg_cond_first(c); n;
	     n = urgent ? most_urgent(c) : next) {
		struct fg_waiter *prev = n->prev;
		struct fg_mutex *mutex = n->mutex;
		bool last = broadcast || _fg_cond_first(c) == c->last, at_release;
		enum given given;

		next = n->next;
		/*
		 * At the release: not one that is to confirm, for which a destroyer may wait with
		 * the mutex.  Those of a broadcast come back 5 to 12 % later so (experiments.md).
		 * The look at the mutex comes before the signal: unless it is ours, it may be gone
		 * right after that.
		 */
		at_release = last && !broadcast && mutex && fg_load_relaxed(&n->word) == ASLEEP;
#ifndef FG_BROKEN_LATE_LOOK /* a test proves that the tests notice */
		at_release = at_release && _fg_mutex_wakes_at_release(mutex);
#endif
		if (!last)
			fg_add_relaxed(&c->lock.tag, 1);
		given = give(c, n, last ? LAST : SIGNALED);
#ifdef FG_BROKEN_LATE_LOOK
		at_release = last && !broadcast && mutex && _fg_mutex_wakes_at_release(mutex);
#endif
		if (at_release)
			at_release = _fg_mutex_wake_at_release(mutex,
							       given == TO_SLEEPER ? n : NULL);
		if (given != NOT_GIVEN) {
			list_remove(c, prev, next);
			*asleep = given == TO_SLEEPER && !at_release;
			return n;
		}
		if (!last)
			fg_add_relaxed(&c->lock.tag, -1u);
	}
	return NULL;
}

void _fg_cond_signal_slow(struct fg_cond *c)
{
	struct fg_waiter *n;
	bool asleep;

	cond_lock(c);
	n = signal_first(c, false, &asleep);
	cond_unlock(c);
	if (n && asleep)
		/* an address; the waiter may have returned */
		fg_futex_wake(&n->word, 1, FG_FUTEX_ANY);
}

void _fg_cond_broadcast_slow(struct fg_cond *c)
{
	uint32_t *sleeping[FG_WAKE_BATCH];
	struct fg_waiter *n;
	unsigned count = 0;
	bool asleep;

	cond_lock(c);
	while ((n = signal_first(c, true, &asleep))) {
		if (!asleep)
			continue;
		if (count == FG_WAKE_BATCH)
			fg_futex_wake(&n->word, 1, FG_FUTEX_ANY);
		else
			sleeping[count++] = &n->word;
	}
	cond_unlock(c);
	/* Without the lock: the first of them may be back for it before the last has been woken. */
	for (unsigned i = 0; i < count; i++)
		fg_futex_wake(sleeping[i], 1, FG_FUTEX_ANY);
}

struct wait {
	struct fg_cond *cond;
	const struct fg_cond_mutex *mutex;
	struct fg_waiter node;
	fg_spin_history history; /* the condition variable's, as it was when the wait began */
	uint32_t epoch;		 /* of the list that the node is in */
	bool alone;		 /* that was empty: so it stays the first */
	bool let_go;		 /* of the mutex */
	struct wait *outer;	 /* which a signal handler has interrupted */
};

/* The innermost wait of this thread, from when it is in the list. */
static __thread struct wait *waiting __attribute__((tls_model("initial-exec")));

/*
 * A signal handler has forked, and this is the child: nobody finds the waiter in the list, which is
 * of the parent, or has been emptied.  So it wakes up, spuriously.  Who is forgotten before it is
 * `waiting` finds out before it sleeps; later it is told, since it may sleep on after the handler.
 */
static bool is_forgotten(const struct wait *w)
{
	return fg_unlikely(w->epoch != fg_load_relaxed(&fg_epoch));
}

void _fg_cond_after_fork(void)
{
	for (struct wait *w = waiting; w; w = w->outer)
		fg_store_relaxed(&w->node.word, LAST);
}

/* The waiter ends the wait by itself.  False: too late, it has been signalled. */
static bool go(struct wait *w)
{
	uint32_t state = fg_load_relaxed(&w->node.word);

	do {
		if (state != WAITING && state != ASLEEP)
			return false;
	} while (!fg_cas_acquire(&w->node.word, &state, GONE));
	if (fg_unlikely(_fg_cond_is_a_childs(w->cond)))
		return true; /* it has emptied the list */
	cond_lock(w->cond);
	/* Its neighbours may be stacks of threads that are not in this process. */
	if (fg_likely(fg_load_relaxed(&w->cond->epoch) == w->epoch)) {
		list_remove(w->cond, w->node.prev, w->node.next);
		add_to_history(w->cond, w->node.spun, false);
	}
	cond_unlock(w->cond);
	return true;
}

/*
 * Signalled: the last touch of the condition variable, if one is due at all (release: see destroy).
 */
static void confirm(struct wait *w)
{
	/* One of the parent's is not counted in the child, or will not be. */
	if (fg_load_acquire(&w->node.word) == SIGNALED && !is_forgotten(w))
		__atomic_fetch_sub(&w->cond->lock.tag, 1, __ATOMIC_RELEASE);
}

/* POSIX: a thread that is cancelled, or that fails, consumes no signal that others wait for. */
static void pass_on(struct wait *w)
{
	if (fg_load_acquire(&w->node.word) == SIGNALED)
		_fg_cond_signal(w->cond);
	confirm(w);
}

static void cancelled(void *arg)
{
	struct wait *w = arg;

	if (!go(w))
		pass_on(w);
	waiting = w->outer;
	if (w->let_go)
		_fg_cond_take_back(w->mutex);
}

/*
 * Before it sleeps.  To ask costs 0.1 us; whoever is alone leaves that to a signaller that finds
 * others of a real-time policy behind it.
 */
static void announce_priority(struct wait *w, const struct fg_self *t)
{
	w->node.tid = fg_thread_tid(t);
	w->node.priority = w->alone ? FG_PRIORITY_UNASKED : fg_real_time_priority(t, 0);
	if (fg_unlikely(w->node.priority && !w->alone) && !fg_load_relaxed(&priorities_matter))
		fg_store_relaxed(&priorities_matter, true);
}

/*
 * Spins for the signal, as long as that is worth a try.  Not a look at
 * the condition variable meanwhile: a broadcaster may have destroyed it.
 * A cancellation point, since policy "spin" never goes to sleep.
 */
static void spin_for_signal(struct wait *w, const struct fg_deadline *deadline)
{
	struct fg_wait event = fg_wait_for_event(fg_self(), &w->history);
	uint32_t seen = WAITING;

	/* Acquire: pairs with the release in give(). */
	while (fg_load_acquire(&w->node.word) == WAITING) {
		if (event.asked % FG_CLOCK_EVERY == 0) {
			fg_testcancel();
			if (fg_deadline_passed(deadline) || is_forgotten(w))
				break;
		}
		if (fg_decide(&event) == FG_BLOCK)
			break;
		w->node.spun = true;
		fg_pause();
	}
	announce_priority(w, event.self);
#ifdef FG_BROKEN_COND /* a test proves that the tests notice */
	seen = fg_load_relaxed(&w->node.word);
#endif
	/* Release: pairs with the acquires in give() and most_urgent(), for what the node says. */
	if (fg_cas_release(&w->node.word, &seen, ASLEEP))
		fg_count(event.self, FG_STAT_COND_WAITS, 1);
}

static void cancelled_alone(void *mutex)
{
	_fg_cond_take_back(mutex);
}

/* Where nobody can wake this thread: a spurious wake-up after a while. */
static int wake_by_itself(const struct fg_cond_mutex *m, const struct fg_deadline *deadline)
{
	struct fg_deadline soon;
	uint32_t never = 0;
	int r = _fg_cond_let_go(m);

	if (r)
		return r;
	fg_deadline_in(&soon, SPURIOUS_NS);
	fg_cleanup_push(cancelled_alone, (void *)m);
	fg_futex_wait_cancellable(&never, 0, &soon);
	fg_cleanup_pop(0);
	r = _fg_cond_take_back(m);
	if (r)
		return r;
	return fg_deadline_passed(deadline) ? ETIMEDOUT : 0;
}

/* 0, -ETIMEDOUT, or what releasing the mutex returned: then it has not waited. */
static int wait_in_list(struct wait *w, const struct fg_deadline *deadline)
{
	int r = _fg_cond_let_go(w->mutex);

	_fg_lock_gone_away();
	if (r) {
		if (!go(w))
			pass_on(w);
		return r;
	}
	fg_store_relaxed(&w->let_go, true);
	fg_fence_local();
	spin_for_signal(w, deadline);
	/* Acquire: pairs with the release in give(). */
	while (fg_load_acquire(&w->node.word) == ASLEEP) {
		if (is_forgotten(w) && go(w))
			break;
		r = fg_futex_wait_cancellable(&w->node.word, ASLEEP, deadline);
		if (r == -ETIMEDOUT && go(w))
			break;
		r = 0;
	}
	return r;
}

static int wait_for_signal(struct fg_cond *c, const struct fg_cond_mutex *m,
			   const struct fg_deadline *deadline)
{
	struct wait w = {.cond = c, .mutex = m, .node.mutex = m->ours};
	int r, locked;

	cond_lock(c);
	w.epoch = fg_load_relaxed(&c->epoch);
	w.alone = !_fg_cond_first(c);
	list_append(c, &w.node);
	w.outer = waiting;
	waiting = &w;
	w.history = (fg_spin_history)(fg_load_relaxed(&c->flags) >> FG_COND_HISTORY);
	cond_unlock(c);
	fg_cleanup_push(cancelled, &w);
	if (m->ours)
		_fg_lock_going_away(&m->ours->lock);
	r = wait_in_list(&w, deadline);
	fg_cleanup_pop(0);

	if (w.let_go && r == 0)
		confirm(&w);
	waiting = w.outer;
	if (!w.let_go)
		return r;
	locked = _fg_cond_take_back(m);
	if (locked)
		return locked;
	return r == -ETIMEDOUT ? ETIMEDOUT : 0;
}

int _fg_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m,
		  const struct fg_deadline *deadline)
{
	int type, r;

	/* Asynchronously it is cancelled asleep, and at the end; not with the list's lock. */
	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_DEFERRED, &type);
	r = fg_unlikely(_fg_cond_is_a_childs(c)) ? wake_by_itself(m, deadline) :
						   wait_for_signal(c, m, deadline);
	if (fg_unlikely(type != PTHREAD_CANCEL_DEFERRED))
		fg_libc_pthread_setcanceltype()(type, NULL);
	return r;
}

void _fg_cond_destroy(struct fg_cond *c)
{
	for (;;) {
		bool empty;

		if (fg_unlikely(_fg_cond_is_a_childs(c)))
			return;
		cond_lock(c);
		/* Acquire: pairs with confirm(). */
		empty = !c->first && !fg_load_acquire(&c->lock.tag);
#ifdef FG_BROKEN_DRAIN /* a test proves that the tests notice */
		empty = !c->first;
#endif
		cond_unlock(c);
		if (empty)
			return;
		/* A waiter is about to leave or to confirm, and nobody will tell us. */
		struct fg_deadline soon;
		uint32_t never = 0;

		fg_deadline_in(&soon, FG_COND_DRAIN_NS);
		fg_futex_wait(&never, 0, FG_FUTEX_ANY, &soon);
	}
}
