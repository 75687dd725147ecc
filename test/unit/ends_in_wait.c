/* SPDX-License-Identifier: MIT */
/*
 * A thread that ends in the middle of its wait for a lock: cancelled asynchronously there, or by
 * pthread_exit() in a signal handler.  POSIX leaves open what happens then; with other locks it is
 * as if that thread had not come.  Here it stands in the queue: nobody gives it the lock any more,
 * nor the role of the head; if it has that, the one behind it gets it, or the next one that comes;
 * and if it slept on behalf of others (DESIGNATED), these look for themselves.  Nor is it the one
 * for ever that looks at a spinlock for all others.
 */
#include "../tools/check.h"

#include "arch/arch.h"
#include "lock/gate.h"
#include "lock/held.h"
#include "lock/offer.h"
#include "lock/queue.h"
#include "lock/spin.h"
#include "runtime/decide.h"

static struct fg_counters counters;
static struct fg_lock l;

struct waiter {
	pthread_t thread;
	uint32_t id;
};

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	fg_self()->short_rounds = 3; /* a head that is followed remains one */
	STORE(w->id, fg_self()->id);
	_fg_lock_slow_any(&l, NULL);
	_fg_unlock(&l);
	return NULL;
}

static enum fg_role role_of(const struct waiter *w)
{
	return (enum fg_role)LOAD(fg_slot_look(fg_id_index(w->id))->role);
}

static void comes(struct waiter *w, enum fg_role role)
{
	w->id = 0;
	w->thread = start(wait_for_it, w);
	UNTIL(LOAD(w->id) && role_of(w) == role);
}

static void end_here(int sig)
{
	(void)sig;
	pthread_exit(NULL);
}

static void ends(struct waiter *w, bool cancelled)
{
	if (cancelled)
		CHECK_EQ(pthread_cancel(w->thread), 0);
	else
		CHECK_EQ(pthread_kill(w->thread, SIGUSR1), 0);
	join(w->thread);
}

static void nobody_is_there(void)
{
	CHECK_EQ(l.word, 0);
	CHECK_EQ(l.tail, 0);
	CHECK_EQ(fg_self()->only & ~(uint64_t)FG_ONLY_SLOWLY, 0);
}

/* The lock is given to this thread, with the role of the head; behind it is the one that ends. */
static void behind_who_gives(bool cancelled)
{
	struct fg_self *t = fg_self();
	struct waiter w;
	uint32_t n, before;

	counters.heartbeat_ns = fg_now_ns();
	_fg_lock(&l);
	n = _fg_queue_join(&l, t, &before);
	CHECK(n && !before);
	comes(&w, FG_ROLE_WAITING);
	CHECK(_fg_offer_make(&l, t));
	_fg_offer_keep(&l, t, n);
	t->only |= FG_ONLY_SLOWLY;
	fg_set_role(t, FG_ROLE_NONE);
	ends(&w, cancelled);
	_fg_unlock(&l);
	nobody_is_there();
}

/* Behind it is another, which is the head then. */
static void as_the_head(bool cancelled)
{
	struct waiter head, behind;

	counters.heartbeat_ns = fg_now_ns();
	_fg_lock(&l);
	comes(&head, FG_ROLE_HEAD);
	comes(&behind, FG_ROLE_WAITING);
	UNTIL(role_of(&head) == FG_ROLE_HEAD);
	ends(&head, cancelled);
	UNTIL(role_of(&behind) == FG_ROLE_HEAD);
	_fg_unlock(&l);
	join(behind.thread);
	nobody_is_there();
}

/* Nobody is behind it: who comes next finds what it has left. */
static void as_the_last(bool cancelled)
{
	struct waiter head, next;

	counters.heartbeat_ns = fg_now_ns();
	_fg_lock(&l);
	comes(&head, FG_ROLE_HEAD);
	ends(&head, cancelled);
	comes(&next, FG_ROLE_HEAD);
	_fg_unlock(&l);
	join(next.thread);
	nobody_is_there();
}

static void *sleep_for_it(void *arg)
{
	_fg_lock(&l);
	_fg_unlock(&l);
	return arg;
}

/* As if it had been the designated waiter: its bit stands, and is cleared by the next sleeper. */
static void as_the_designated_waiter(bool cancelled)
{
	struct waiter w;
	pthread_t t;

	fg_policy_set(FG_POLICY_BLOCK);
	_fg_lock(&l);
	w.id = 0;
	w.thread = start(wait_for_it, &w);
	UNTIL(LOAD(l.word) & FG_WORD_WAITERS);
	fg_or_relaxed(&l.word, FG_WORD_DESIGNATED);
	ends(&w, cancelled);
	t = start(sleep_for_it, NULL);
	UNTIL(!(LOAD(l.word) & FG_WORD_DESIGNATED));
	_fg_unlock(&l);
	join(t);
	CHECK_EQ(l.word & ~FG_WORD_WAITERS, 0);
	l.word = 0;
}

static int32_t spin = FG_SPIN_FREE;

static void *wait_for_spin(void *arg)
{
	struct waiter *w = arg;

	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	STORE(w->id, fg_self()->id);
	_fg_spin_lock(&spin, NULL);
	_fg_spin_unlock(&spin);
	return NULL;
}

static uint32_t owner_of_gate(void)
{
	return LOAD(_fg_gate(&spin)->word) & FG_WORD_ID;
}

static void at_a_gate(bool cancelled)
{
	struct waiter w = {0};

	_fg_spin_lock(&spin, NULL);
	w.thread = start(wait_for_spin, &w);
	UNTIL(LOAD(w.id) && owner_of_gate() == w.id);
	ends(&w, cancelled);
	CHECK_EQ(owner_of_gate(), 0);
	_fg_spin_unlock(&spin);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	signal(SIGUSR1, end_here);
	/* Until it is told to stop, a waiter stays in the queue. */
	fg_policy_set(FG_POLICY_SPIN);
	fg_policy_monitor(&counters, 1);
	fg_slots_seen = FG_PIECE;
	for (int i = 0; i < 20; i++) {
		behind_who_gives(i % 2);
		as_the_head(i % 2);
		as_the_last(i % 2);
		at_a_gate(i % 2);
	}
	for (int i = 0; i < 2; i++)
		as_the_designated_waiter(i % 2);
	return 0;
}
