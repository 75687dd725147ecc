/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h).
 *
 * A waiter spins in the queue while fg_decide() says so and sleeps on the word
 * otherwise.  In contrast to the paper's listing a release wakes nobody while
 * the head of the queue spins: on a machine with N CPUs about N threads take
 * the lock in turn without any system call, and the others sleep.  So that
 * they do not sleep for ever, a thread that has been awake for TURN_NS wakes
 * one of them and sleeps in its place at its next contended acquisition (the
 * idea of culling and re-admitting waiters: Dice, "Malthusian Locks",
 * EuroSys 2017).
 */
#include "lock/lock.h"

#include <errno.h>

#include "arch/arch.h"
#include "lock/decide.h"
#include "lock/queue.h"
#include "sys/count.h"
#include "sys/monitor_client.h"

/* How long a thread that has others asleep behind it keeps taking the lock. */
#define TURN_NS 5000000u

enum outcome { ACQUIRED, UNDECIDED, TIMED_OUT };

/* Deadlines are looked at once in so many questions. */
#define DEADLINE_EVERY 64u

static bool timed_out(const struct fg_wait *w, const struct fg_deadline *deadline)
{
	return fg_unlikely(deadline != NULL) && w->asked % DEADLINE_EVERY == 1 && fg_deadline_passed(deadline);
}

/* Takes a free word, leaving `keep` of its flags as they are and setting `set`. */
static bool take(struct fg_lock *l, struct fg_self *t, uint32_t drop, uint32_t set)
{
	uint32_t w = fg_load_relaxed(&l->word);

	while (!(w & FG_WORD_ID))
		if (fg_cas_acquire(&l->word, &w, (w & ~drop) | set | t->id)) /* pairs with release() */
			return true;
	return false;
}

/* The head goes without the lock.  It may not leave SPINNER behind: true if it got the lock after all. */
static bool stand_down(struct fg_lock *l, struct fg_self *t)
{
	uint32_t w = fg_load_relaxed(&l->word);

	while (w & FG_WORD_SPINNER) {
		/* Released to us: the releaser has left the sleepers asleep because of us. */
		if (!(w & FG_WORD_ID)) {
			if (fg_cas_acquire(&l->word, &w, (w & ~FG_WORD_SPINNER) | t->id))
				return true;
		} else if (fg_cas_relaxed(&l->word, &w, w & ~FG_WORD_SPINNER)) {
			break;
		}
	}
	return false;
}

/* The only waiter that looks at the word. */
static enum outcome spin_as_head(struct fg_lock *l, struct fg_self *t, struct fg_wait *w,
				 const struct fg_deadline *deadline)
{
	for (;;) {
		uint32_t word = fg_load_relaxed(&l->word);

		if (!(word & FG_WORD_ID)) {
			if (take(l, t, FG_WORD_SPINNER, 0))
				return ACQUIRED;
			continue;
		}
		if ((word & (FG_WORD_WAITERS | FG_WORD_SPINNER)) == FG_WORD_WAITERS)
			fg_cas_relaxed(&l->word, &word, word | FG_WORD_SPINNER);
		w->owner = word & FG_WORD_ID;
		if (fg_decide(w) == FG_BLOCK)
			return UNDECIDED;
		if (timed_out(w, deadline))
			return stand_down(l, t) ? ACQUIRED : TIMED_OUT;
		fg_pause();
	}
}

/* Behind somebody: spins on the node.  UNDECIDED: no longer in the queue. */
static enum outcome spin_in_queue(struct fg_lock *l, struct fg_self *t, struct fg_wait *w, uint32_t n,
				  const struct fg_deadline *deadline, bool *head)
{
	for (;;) {
		enum fg_queue_poll poll = fg_queue_poll(t, n);
		bool late;

		if (poll == FG_QUEUE_LOST)
			return UNDECIDED;
		if (poll == FG_QUEUE_HEAD) {
			*head = true;
			return UNDECIDED;
		}
		if (w->asked % DEADLINE_EVERY == 0)
			w->owner = fg_load_relaxed(&l->word) & FG_WORD_ID;
		if (fg_decide(w) == FG_BLOCK || (late = timed_out(w, deadline))) {
			if (!fg_queue_leave(t, n)) {
				*head = true; /* just granted: decide again as the head */
				return UNDECIDED;
			}
			return late ? TIMED_OUT : UNDECIDED;
		}
		fg_pause();
	}
}

static enum outcome spin(struct fg_lock *l, struct fg_self *t, struct fg_wait *w,
			 const struct fg_deadline *deadline)
{
	enum outcome o = UNDECIDED;
	bool head;
	uint32_t n = fg_queue_join(l, t, &head);

	if (!n)
		return UNDECIDED;
	if (!head)
		o = spin_in_queue(l, t, w, n, deadline, &head);
	if (head) {
		o = spin_as_head(l, t, w, deadline);
		fg_queue_hand_over(l, t, n);
	}
	return o;
}

static enum outcome sleep_on(struct fg_lock *l, struct fg_self *t, const struct fg_deadline *deadline)
{
	uint32_t w = fg_load_relaxed(&l->word), asleep;
	uint64_t since = fg_now_ns();
	int r;

	/*
	 * SPINNER goes whoever has set it: a head that still spins sets it again;
	 * one that does not (it was in the parent of a fork, or is us) would keep
	 * everybody asleep for ever.
	 */
	do {
		if (!(w & FG_WORD_ID)) {
			if (take(l, t, FG_WORD_SPINNER, 0))
				return ACQUIRED;
			w = fg_load_relaxed(&l->word);
			asleep = 0;
			continue;
		}
		asleep = (w & ~FG_WORD_SPINNER) | FG_WORD_WAITERS;
	} while (!asleep || (w != asleep && !fg_cas_relaxed(&l->word, &w, asleep)));

	fg_count(t, FG_STAT_PARKS, 1);
	r = fg_futex_wait(&l->word, asleep, deadline);
	t->turn_ns = fg_now_ns();
	fg_count(t, FG_STAT_BLOCKED_NS, t->turn_ns - since);
	if (r == 0) {
		/*
		 * The release that woke us has cleared WAITERS for all.  It must be
		 * set again, by taking the lock with it or on the lock of another,
		 * before we do anything else: other sleepers depend on it.
		 */
		for (w = fg_load_relaxed(&l->word);;) {
			if (!(w & FG_WORD_ID)) {
				if (take(l, t, 0, FG_WORD_WAITERS))
					return ACQUIRED;
				w = fg_load_relaxed(&l->word);
			} else if ((w & FG_WORD_WAITERS) || fg_cas_relaxed(&l->word, &w, w | FG_WORD_WAITERS)) {
				break;
			}
		}
	}
	return r == -ETIMEDOUT ? TIMED_OUT : UNDECIDED;
}

/* The word was not simply free. */
static int lock_contended(struct fg_lock *l, struct fg_self *t, const struct fg_deadline *deadline)
{
	/* A signal handler that waits while its thread waits: the outer wait's role comes back at the end. */
	enum fg_role outer_role = t->role;
	uint64_t outer_node = t->slot->node;
	struct fg_wait w = { .self = t };
	enum outcome o = take(l, t, 0, 0) ? ACQUIRED : UNDECIDED; /* free, with sleepers or a head: barge */
	bool slept = false;

	if (o != ACQUIRED) {
		fg_count(t, FG_STAT_CONTENDED, 1);
		fg_monitor_register_if_due();
	}
	while (o == UNDECIDED) {
		w.owner = fg_load_relaxed(&l->word) & FG_WORD_ID;
		if (!t->give_way && fg_decide(&w) == FG_SPIN)
			o = spin(l, t, &w, deadline);
		t->give_way = 0;
		if (o == ACQUIRED && !slept)
			fg_count(t, FG_STAT_SPUN, 1);
		if (o == UNDECIDED) {
			slept = true;
			o = sleep_on(l, t, deadline);
			w = (struct fg_wait){ .self = t };
		}
	}
	if (fg_unlikely(outer_role != FG_ROLE_NONE)) {
		fg_store_relaxed(&t->slot->node, outer_node);
		fg_set_role(t, outer_role);
	}
	return o == ACQUIRED ? 0 : ETIMEDOUT;
}

/* ---- publication, when a thread holds several locks ------------------------ */

static uint64_t address(const struct fg_lock *l)
{
	return (uint64_t)(uintptr_t)l;
}

/* How many locks of this thread others have released for it since it last asked. */
static uint32_t released_for_me(const struct fg_self *t)
{
	struct fg_thread *me;

	if (!fg_id_has_slot(t->id))
		return 0;
	me = fg_thread_of(fg_id_index(t->id));
	return fg_load_relaxed(&me->foreign) ? fg_xchg_acq_rel(&me->foreign, 0) : 0;
}

/* Locks that this thread is known to have, the one that an interrupted frame is taking included. */
static uint32_t locks_held(const struct fg_self *t)
{
	uint32_t held = t->only == FG_ONLY_SEVERAL ? t->held : t->only != FG_ONLY_NONE;
	uint32_t gone = released_for_me(t);

	return held > gone ? held - gone : 0;
}

/* What a thread publishes that holds `held` locks, and takes or holds `pending` as the latest. */
static void publish(struct fg_self *t, uint32_t held, uint64_t pending)
{
	t->held = held;
	if (held == 0)
		pending = 0;
	if (held <= 1 && !t->tangled) {
		t->only = held && pending ? pending : held ? FG_ONLY_SEVERAL : FG_ONLY_NONE;
		fg_set_pending(t, pending);
		fg_set_cs(t, held && !pending);
		return;
	}
	t->only = held ? FG_ONLY_SEVERAL : FG_ONLY_NONE;
	t->tangled = held ? t->tangled : 0;
	fg_set_cs(t, held); /* all of them, so the order of these two does not matter */
	fg_set_pending(t, pending);
}

/* Announces that `l` is being taken, besides what is held.  Returns what was pending. */
static uint64_t announce(struct fg_lock *l, struct fg_self *t)
{
	uint64_t prev = 0;

	t->held = locks_held(t);
	if (t->held) {
		prev = t->slot->pending;
		t->only = FG_ONLY_SEVERAL;
		fg_set_cs(t, t->held);
	} else {
		t->only = address(l);
		fg_set_cs(t, 0);
	}
	fg_set_pending(t, address(l));
	return prev;
}

static void acquired(struct fg_lock *l, struct fg_self *t, uint64_t prev)
{
	fg_store_relaxed(&t->slot->acq_cpu, fg_load_relaxed(t->cpu));
	if (t->only == FG_ONLY_SEVERAL) {
		l->prev = prev;
		t->held++;
	}
}

static void not_acquired(struct fg_self *t, uint64_t prev)
{
	publish(t, t->only == FG_ONLY_SEVERAL ? t->held : 0, prev);
}

__attribute__((noinline)) int fg_lock_general(struct fg_lock *l, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();
	/* The fast path has announced it already, unless this is our own lock once more. */
	bool announced = t->only == address(l) && (fg_load_relaxed(&l->word) & FG_WORD_ID) != t->id;
	uint64_t prev = announced ? 0 : announce(l, t);

	if (announced)
		released_for_me(t); /* it can only have been this one */
	if (!fg_take_free(l, t)) {
		int r = lock_contended(l, t, deadline);

		if (r) {
			not_acquired(t, prev);
			return r;
		}
	}
	acquired(l, t, prev);
	return 0;
}

__attribute__((noinline)) bool fg_trylock_general(struct fg_lock *l)
{
	struct fg_self *t = fg_self();
	uint64_t prev;

	if (fg_load_relaxed(&l->word) & FG_WORD_ID)
		return false;
	prev = announce(l, t);
	/* Free with sleepers, or with a head about to take it, is free. */
	if (!fg_take_free(l, t) && !take(l, t, 0, 0)) {
		not_acquired(t, prev);
		return false;
	}
	acquired(l, t, prev);
	return true;
}

/* ---- release --------------------------------------------------------------- */

/* True, and a new turn begins, if this thread has had its turn and others sleep meanwhile. */
static bool turn_is_over(struct fg_self *t)
{
	uint64_t now = fg_now_ns();

	if (now - t->turn_ns < TURN_NS)
		return false;
	t->turn_ns = now;
	t->give_way = 1;
	return true;
}

/* Clears the owner.  Returns true if a sleeper has to be woken. */
static bool release(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	bool keep_asleep;

	do {
		keep_asleep = (w & FG_WORD_SPINNER) && (w & FG_WORD_WAITERS);
	} while (!fg_cas_release(&l->word, &w, keep_asleep ? w & ~FG_WORD_ID : 0));
	/* From here on the lock may be gone. */
	if (!(w & FG_WORD_WAITERS))
		return false;
	if (keep_asleep && !fg_critical_path_preempted() && !turn_is_over(t)) {
		fg_count(t, FG_STAT_WAKEUPS_SAVED, 1);
		return false;
	}
	return true;
}

static void wake_one(struct fg_lock *l, const struct fg_self *t)
{
#ifndef FG_BROKEN_WAKE /* a test proves that the tests notice */
	fg_futex_wake(&l->word, 1); /* an address, not an access */
	fg_count(t, FG_STAT_WAKEUPS, 1);
#endif
}

/* A lock that this thread does not hold: what glibc does with normal mutexes, which programs use. */
static void unlock_foreign(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	uint32_t owner = w & FG_WORD_ID;

	if (!owner)
		return;
	if (fg_id_has_slot(owner))
		fg_add_relaxed(&fg_thread_of(fg_id_index(owner))->foreign, 1);
	if (release(l, t, w))
		wake_one(l, t);
}

__attribute__((noinline)) void fg_unlock_general(struct fg_lock *l)
{
	struct fg_self *t = fg_self();
	uint32_t w = fg_load_relaxed(&l->word), held;
	uint64_t pending = t->slot->pending, prev;

	if ((w & FG_WORD_ID) != t->id) {
		unlock_foreign(l, t, w);
		return;
	}
	held = t->only == FG_ONLY_SEVERAL ? t->held : 1;
	if (pending != address(l)) { /* not the latest: what is pending stays so */
		prev = pending;
		t->tangled = held > 2;
	} else {
		prev = held > 1 ? l->prev : 0;
	}
	/*
	 * cs stops counting this lock before the release, pending is exact until
	 * it.  With sleepers the thread stays critical until the wake-up is out:
	 * the lock is free then and nobody is coming.
	 */
	fg_set_pending(t, address(l));
	fg_set_cs(t, w & FG_WORD_WAITERS ? held : held - 1);
	if (release(l, t, w))
		wake_one(l, t);
	publish(t, held - 1, prev);
}
