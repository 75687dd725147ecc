/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h).
 *
 * A waiter spins in the queue while fg_decide() says so and sleeps otherwise.  In
 * contrast to the paper's listing a release does not wake anybody as long as the
 * threads that are awake keep the lock busy: on a machine with N CPUs about N
 * threads take the lock in turn without any system call, and the others sleep.  Four things keep that honest:
 *
 *   - sleepers are left asleep only while one of them, the designated waiter, sleeps
 *     with a time limit and checks the lock every few ms.  The spinning head is not enough: the
 *     scheduler may keep it off its CPU for as long as it likes;
 *   - only a thread that releases the lock often leaves it to the designated waiter alone;
 *   - no sleep is for ever, so that this holds for any other thread, too;
 *   - a thread that has had its turn wakes the longest sleeper and sleeps in
 *     its place when it next has to wait, or yields to it if it need not.
 *
 * Culling waiters and re-admitting them: Dice, "Malthusian Locks", EuroSys 2017.
 * There a queue is culled at each hand-over; here the scheduler's decisions cull
 * (a preempted critical path makes waiters sleep), and sleep is the passive set.
 */
#include "lock/lock.h"

#include <errno.h>

#include "arch/arch.h"
#include "lock/held.h"
#include "lock/queue.h"
#include "lock/rounds.h"
#include "lock/foreign_process.h"
#include "runtime/count.h"
#include "runtime/decide.h"

/* How long a thread that has others asleep behind it keeps taking the lock. */
#define TURN_US 5000u

/* It sleeps when it next has to wait; one that does not have to for so long wakes the other and yields. */
#define GRACE_US 1000u

/* How often it looks then whether the other has come, 100, 200, 400 us apart. */
#define YIELD_SLEEPS 3u

/* A thread that releases a lock less often than this wakes a sleeper each time. */
#define BUSY_US 50u

/* How often a head looks at the word that knows its own rounds to be short (rounds.h). */
#define BACKOFF_NS 3000u

/*
 * A thread that goes to sleep first sleeps for a short time: if the CPU that it left is
 * not in use by another thread of the process afterwards, it comes back.
 */
#define SHORT_SLEEP_NS 100000u
#define SHORT_SLEEPS   2

/* The designated waiter's time limit; doubled, DESIGNATED_MAX_NS at most, while it finds the same owner. */
#define DESIGNATED_NS	  1000000u
#define DESIGNATED_MAX_NS 4000000u
#define SAME_OWNER	  8 /* then the lock is held for long, and its release will wake somebody */

/* One check in so many comes to stay although there seems to be no CPU for it: the scheduler may find one. */
#define PROBE_EVERY 8

/*
 * Who waits with a deadline looks at the lock each time that a quarter of what was left has
 * passed: ever more often, some ten times in 20 ms and twice as often in a second.
 */
#define TIMED_PART 4u
#define TIMED_NS   1000000u

/*
 * Everybody else checks periodically, at first after OTHERS_NS and then at intervals four times as long
 * each time.  That is for the one thread that others rely on and that is kept off its CPU: the
 * designated waiter; one that has been woken, until it takes the lock; one between a release and its
 * wake-up.  Time limits of 4 ms and more cost nothing that could be measured, of 1 ms a microsecond.
 */
#define OTHERS_MAX_NS 8192000000u
#ifdef FG_BROKEN_WAKE /* checks would make up for it before the tests can notice */
#define OTHERS_NS OTHERS_MAX_NS
#else
#define OTHERS_NS 8000000u
#endif

/* In the child of a fork the designated waiter may be a thread of the parent: who finds one waits so long for it. */
#define PARENTS_NS 100000000u

/* How long to sleep for an owner that is no thread of this process, before it is looked at again. */
#define FOREIGN_NS 1000000000u

enum outcome { ACQUIRED, UNDECIDED, SLEEP_AGAIN, TIMED_OUT };

/* Deadlines, and the owner by those who are not the head, are looked at once in so many questions. */
#define DEADLINE_EVERY 64u
#define OWNER_EVERY    64u

/* Takes a free word, without the flags in `drop` and with those in `set`. */
static bool take(struct fg_lock *l, struct fg_self *t, uint32_t drop, uint32_t set)
{
	uint32_t w = fg_load_relaxed(&l->word);

#ifdef FG_BROKEN_LOCK
	return _fg_take_free(l, t);
#endif
	if (__libc_single_threaded) { /* as in _fg_take_free */
		if (w & FG_WORD_ID)
			return false;
		fg_store_relaxed(&l->word, (w & ~drop) | set | t->id);
		fg_fence_local();
		return true;
	}
	while (!(w & FG_WORD_ID))
		if (fg_cas_acquire(&l->word, &w, (w & ~drop) | set | t->id)) /* pairs with release() */
			return true;
	return false;
}

/* Sleepers are told apart by the CPU that they ran on last. */
static uint32_t channel(const struct fg_self *t)
{
	return 1u << fg_load_relaxed(t->cpu) % 32;
}

/* `near`: one that ran on this CPU last, if there is one. */
static void wake_one(struct fg_lock *l, const struct fg_self *t, bool near)
{
#ifndef FG_BROKEN_WAKE /* a test proves that the tests notice */
	/* An address, not an access. */
	if (!near || !fg_futex_wake(&l->wakes, 1, channel(t)))
		fg_futex_wake(&l->wakes, 1, FG_FUTEX_ANY);
	fg_count(t, FG_STAT_WAKEUPS, 1);
#endif
}

/* One acquisition on its way through the slow path. */
struct attempt {
	struct fg_wait wait;
	const struct fg_deadline *deadline;
	/* SPINNER or DESIGNATED: the bit of the word that this thread has set and must not leave behind. */
	uint32_t obligation;
	uint32_t designated_ns;
	uint64_t check_ns;
	uint32_t short_sleeps;	  /* since it was awake last */
	uint32_t no_room; /* checks that found no CPU to spare */
	uint32_t same;	  /* checks in a row that found the same owner */
	uint32_t seen;	  /* owner at the last check */
	bool slept;
	bool in_vain; /* woken by a release or by its time limit, and the lock was taken again */
};

static bool timed_out(const struct attempt *a)
{
	return fg_unlikely(a->deadline != NULL) && a->wait.asked % DEADLINE_EVERY == 1 &&
	       fg_deadline_passed(a->deadline);
}

/* Takes the word if it is free and drops our obligation with it. */
static bool take_over(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	if (!take(l, t, a->obligation, 0))
		return false;
	a->obligation = 0;
	return true;
}

/* Goes without the lock, and leaves no obligation behind.  True if it got the lock after all. */
static bool drop_obligation(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t w = fg_load_relaxed(&l->word);

	while (w & a->obligation) {
		/* Free: released to us; the releaser has left the sleepers asleep because of us. */
		if (!(w & FG_WORD_ID)) {
			if (take_over(l, t, a))
				return true;
			w = fg_load_relaxed(&l->word);
		} else if (fg_cas_relaxed(&l->word, &w, w & ~a->obligation)) {
			break;
		}
	}
	a->obligation = 0;
	return false;
}

static void pause_for(uint64_t ns)
{
	uint64_t until = fg_now_ns() + ns;

	while (fg_now_ns() < until)
		fg_pause();
}

/* The only waiter that looks at the word. */
static enum outcome spin_as_head(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	bool back_off = rounds_are_short(t);

	if (back_off)
		pause_for(BACKOFF_NS);
	for (;;) {
		uint32_t word = fg_load_relaxed(&l->word);

		if (!(word & FG_WORD_ID)) {
			if (take_over(l, t, a))
				return ACQUIRED;
			continue;
		}
		/* No longer designated: SPINNER and DESIGNATED are two threads, since one may be off its CPU. */
		if ((word & (FG_WORD_WAITERS | FG_WORD_SPINNER)) == FG_WORD_WAITERS &&
		    fg_cas_relaxed(&l->word, &word, (word & ~a->obligation) | FG_WORD_SPINNER))
			a->obligation = FG_WORD_SPINNER;
		a->wait.owner = word & FG_WORD_ID;
		if (fg_decide(&a->wait) == FG_BLOCK)
			return UNDECIDED;
		if (timed_out(a))
			return TIMED_OUT;
		if (back_off)
			pause_for(BACKOFF_NS);
		else
			fg_pause();
	}
}

/* Behind somebody: spins on the node.  UNDECIDED: the head, or no longer in the queue. */
static enum outcome spin_in_queue(struct fg_lock *l, struct fg_self *t, struct attempt *a, uint32_t n, bool *head)
{
	for (;;) {
		enum fg_queue_poll poll = _fg_queue_poll(t, n);
		bool late = false;

		if (poll != FG_QUEUE_WAIT) {
			*head = poll == FG_QUEUE_HEAD;
			return UNDECIDED;
		}
		/* The word belongs to the owner and the head; the others look at it rarely. */
		if (a->wait.asked % OWNER_EVERY == 0)
			a->wait.owner = fg_load_relaxed(&l->word) & FG_WORD_ID;
		if (fg_decide(&a->wait) == FG_BLOCK || (late = timed_out(a))) {
			*head = !_fg_queue_leave(t, n); /* just granted: decide again as the head */
			return late && !*head ? TIMED_OUT : UNDECIDED;
		}
		fg_pause();
	}
}

static enum outcome spin(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	enum outcome o = UNDECIDED;
	bool head;
	uint32_t n = _fg_queue_join(l, t, &head), asked = a->wait.asked;

	if (!n)
		return UNDECIDED;
	if (!head)
		o = spin_in_queue(l, t, a, n, &head);
	if (head) {
		o = spin_as_head(l, t, a);
		_fg_queue_hand_over(l, t, n);
	}
	fg_count(t, FG_STAT_SPINS, a->wait.asked - asked);
	return o;
}

static bool keeps_busy(const struct fg_lock *l, const struct fg_self *t)
{
	return t->busy && fg_thread_mine(t)->busy_lock == (uint32_t)address(l);
}

/*
 * Sets the bits with which this thread goes to sleep: WAITERS, and DESIGNATED if it
 * becomes the designated waiter.  A lock that nobody keeps busy needs none, whose time
 * limit costs a timer: not before a wake-up has been in vain, unless this
 * thread has kept it busy itself.  SPINNER goes whoever has set it: a head that still spins
 * sets it again; one that does not (it is us, or was in the parent of a fork)
 * would keep everybody asleep for ever.  Returns the word, or 0 with the lock;
 * in *wakes what to sleep on.
 */
static uint32_t prepare_sleep(struct fg_lock *l, struct fg_self *t, struct attempt *a, bool may_be_designated,
			      uint32_t *wakes)
{
	uint32_t asleep, obligation, w;

	/* Before the look at the word: see release(). */
	*wakes = fg_load_acquire(&l->wakes);
	w = fg_load_acquire(&l->word);

	for (;;) {
		if (!(w & FG_WORD_ID)) {
			if (take(l, t, a->obligation | FG_WORD_SPINNER, 0)) {
				a->obligation = 0;
				return 0;
			}
			w = fg_load_relaxed(&l->word);
			continue;
		}
		asleep = (w & ~FG_WORD_SPINNER) | FG_WORD_WAITERS;
		obligation = a->obligation & FG_WORD_DESIGNATED;
		if (!may_be_designated) {
			asleep &= ~obligation;
			obligation = 0;
		} else if (!(w & FG_WORD_DESIGNATED) && (a->in_vain || keeps_busy(l, t))) {
			asleep |= FG_WORD_DESIGNATED;
			obligation = FG_WORD_DESIGNATED;
		}
		if (w == asleep || fg_cas_acq_rel(&l->word, &w, asleep)) {
			a->obligation = obligation;
			return asleep;
		}
	}
}

/* True if a->seen has had the lock for so long that its release may as well wake somebody. */
static bool held_for_long(struct attempt *a, uint32_t owner)
{
	if (owner != a->seen) {
		a->seen = owner;
		a->same = 0;
		a->designated_ns = DESIGNATED_NS;
		return false;
	}
	if (a->designated_ns < DESIGNATED_MAX_NS)
		a->designated_ns *= 2;
	return ++a->same > SAME_OWNER;
}

/*
 * Woken by a release, which has cleared WAITERS for all.  It must be set again,
 * by taking the lock with it or on the lock of another, before anything else is
 * done: other sleepers depend on it.  True with the lock.
 */
static bool retake(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t w = fg_load_relaxed(&l->word);

	for (;;) {
		if (!(w & FG_WORD_ID)) {
			if (take(l, t, a->obligation, FG_WORD_WAITERS)) {
				a->obligation = 0;
				return true;
			}
			w = fg_load_relaxed(&l->word);
		} else if ((w & FG_WORD_WAITERS) || fg_cas_relaxed(&l->word, &w, w | FG_WORD_WAITERS)) {
			return false;
		}
	}
}

/* Why a sleep ends by itself. */
enum limit { DEADLINE, DEADLINE_NEARER, DESIGNATED_CHECK, PARENTS_WAITER, FOREIGN_OWNER, CHECK };

/*
 * A reader at the gate of a reader-writer lock, which tries another way after some ms: its limit is its
 * periodic check.  32 of them that look ever more often, or look after the gate, cost a lock with 1 % writes a
 * third of its sections (empty ones; 2-CPU VM).
 */
static bool tries_again(const struct attempt *a)
{
	return a->deadline && a->deadline->internal;
}

/* How long to sleep, and for what reason no longer. */
static enum limit sleep_limit(struct fg_self *t, struct attempt *a, uint32_t asleep, bool may_be_designated,
			      uint64_t *ns)
{
	enum limit limit = DESIGNATED_CHECK;
	uint64_t left;

	if (tries_again(a))
		return DEADLINE;
	if (may_be_designated && (asleep & FG_WORD_DESIGNATED) && a->short_sleeps < SHORT_SLEEPS &&
	    !fg_displaced_another(t)) {
		*ns = SHORT_SLEEP_NS << 2 * a->short_sleeps++;
	} else if (a->obligation & FG_WORD_DESIGNATED) {
		if (!a->designated_ns)
			a->designated_ns = DESIGNATED_NS;
		*ns = a->designated_ns;
	} else if (fg_unlikely(fg_epoch != 0 && (asleep & FG_WORD_DESIGNATED))) {
		*ns = PARENTS_NS;
		limit = PARENTS_WAITER;
	} else if (fg_unlikely(_fg_held_by_foreign_process(asleep))) {
		*ns = FOREIGN_NS;
		limit = FOREIGN_OWNER;
	} else {
		a->check_ns = a->check_ns ? a->check_ns * 4 : OTHERS_NS;
		if (a->check_ns > OTHERS_MAX_NS)
			a->check_ns = OTHERS_MAX_NS;
		*ns = a->check_ns;
		limit = CHECK;
	}
	if (fg_likely(!a->deadline))
		return limit;
	left = fg_deadline_left(a->deadline);
	if (left / TIMED_PART < *ns) {
		*ns = left / TIMED_PART > TIMED_NS ? left / TIMED_PART : TIMED_NS;
		limit = DEADLINE_NEARER;
	}
	return left <= *ns ? DEADLINE : limit;
}

/* Its time limit has passed, and nobody has woken it. */
static enum outcome look_around(struct fg_lock *l, struct fg_self *t, struct attempt *a, enum limit limit,
				uint32_t asleep)
{
	switch (limit) {
	case DEADLINE:
		return TIMED_OUT;
	case PARENTS_WAITER:
		a->obligation = FG_WORD_DESIGNATED; /* ours to clear now; a living waiter would only be one too many */
		return drop_obligation(l, t, a) ? ACQUIRED : UNDECIDED;
	case FOREIGN_OWNER:
		_fg_report_foreign_process(l);
		return UNDECIDED;
	default:
		break;
	}
	if (take_over(l, t, a))
		return ACQUIRED;
	a->in_vain = true; /* the next designated waiter, if there is none */
	if (limit == CHECK)
		return SLEEP_AGAIN;
	held_for_long(a, fg_load_relaxed(&l->word) & FG_WORD_ID);
	if (limit == DESIGNATED_CHECK && fg_displaced_another(t) && ++a->no_room % PROBE_EVERY)
		return SLEEP_AGAIN;
	t->turn_us = t->busy_us = (uint32_t)(fg_now_ns() / 1000);
	return UNDECIDED; /* there is room, or little time: come and stay */
}

static enum outcome sleep_on(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	bool may_be_designated = !tries_again(a) && fg_policy_now != FG_POLICY_BLOCK && a->same <= SAME_OWNER;
	uint64_t since = fg_now_ns(), until, ns = 0;
	uint32_t wakes, asleep = prepare_sleep(l, t, a, may_be_designated, &wakes);
	struct fg_deadline soon;
	enum limit limit;
	int r;

	if (!asleep)
		return ACQUIRED;
	limit = sleep_limit(t, a, asleep, may_be_designated, &ns);
	if (limit != DEADLINE)
		fg_deadline_in(&soon, ns);
	a->slept = true;
	fg_count(t, FG_STAT_PARKS, 1);
	r = fg_futex_wait(&l->wakes, wakes, channel(t), limit == DEADLINE ? a->deadline : &soon);
	until = fg_now_ns();
	fg_count(t, FG_STAT_BLOCKED_NS, until - since);
	if (r == 0) {
		t->turn_us = t->busy_us = (uint32_t)(until / 1000);
		a->same = a->short_sleeps = 0;
		a->in_vain = true;
		return retake(l, t, a) ? ACQUIRED : UNDECIDED;
	}
	return r == -ETIMEDOUT ? look_around(l, t, a, limit, asleep) : UNDECIDED;
}

/* The lock is held. */
static __attribute__((noinline, cold)) int lock_contended(struct fg_lock *l, struct fg_self *t,
							  const struct fg_deadline *deadline,
							  bool *as_head)
{
	/* A signal handler that waits while its thread waits: the outer wait's role comes back at the end. */
	enum fg_role outer_role = t->role;
	uint64_t outer_node = t->slot->node;
	struct attempt a = { .wait.self = t, .deadline = deadline };
	enum outcome o = UNDECIDED;

	fg_count(t, FG_STAT_CONTENDED, 1);
	if (fg_unlikely(t->turn_over)) {
		/* Its sleep comes first thing below; no short one. */
		wake_one(l, t, true);
		a.short_sleeps = SHORT_SLEEPS;
		o = SLEEP_AGAIN;
		t->turn_over = 0;
	}
	while (o == UNDECIDED || o == SLEEP_AGAIN) {
		a.wait.owner = fg_load_relaxed(&l->word) & FG_WORD_ID;
		if (o == UNDECIDED && fg_decide(&a.wait) == FG_SPIN)
			o = spin(l, t, &a);
		if (o == ACQUIRED) {
			*as_head = true;
			if (!a.slept)
				fg_count(t, FG_STAT_SPUN, 1);
		}
		if (o == UNDECIDED || o == SLEEP_AGAIN) {
			o = sleep_on(l, t, &a);
			a.wait = (struct fg_wait){ .self = t };
		}
	}
	if (o == TIMED_OUT && drop_obligation(l, t, &a))
		o = ACQUIRED;
	if (fg_unlikely(outer_role != FG_ROLE_NONE)) {
		fg_store_relaxed(&t->slot->node, outer_node);
		fg_set_role(t, outer_role);
	}
	return o == ACQUIRED ? 0 : ETIMEDOUT;
}

/* ---- taking and giving back ------------------------------------------------ */

/* Announces `l` unless the fast path has done so (and then failed).  Returns what was pending. */
static uint64_t announce_once(struct fg_lock *l, struct fg_self *t)
{
	if (t->only == address(l) && (fg_load_relaxed(&l->word) & FG_WORD_ID) != t->id) {
		released_for_me(t); /* if anything, this one: it looks held by us and is not */
		return 0;
	}
	return announce(l, t);
}

/*
 * The common case of the general path: this thread holds other locks, and this
 * one is free.  What lock_slow() would do, without the rest.
 */
static inline bool lock_nested(struct fg_lock *l, struct fg_self *t)
{
	uint64_t prev = t->only;
	uint32_t held = 1;

	if (fg_load_relaxed(&l->word) || t->timing || !fg_has_slot(t) || fg_thread_has_released_by_others(t))
		return false;
	if (prev == FG_ONLY_SEVERAL) {
		prev = t->pending;
		held = t->held;
	}
	if (!held || prev == FG_ONLY_NONE || prev == address(l))
		return false;
	announce_beside(l, t, held);
	if (!_fg_take_free(l, t)) {
		not_acquired(t, prev);
		return false;
	}
	acquired(l, t, prev);
	return true;
}

/*
 * Its turn is over, and it has woken a sleeper: one who takes the lock again at once overtakes whoever is
 * on his way, as often as it likes.  So it lets the other come first, for a time; who
 * does not come by then has no claim.  Nobody else depends on this: it is only late.
 * What others do: parking_lot's release hands the lock over every 0.5 ms or so, Linux's mutex (kernel/locking/mutex.c)
 * when a woken waiter asks for it, Go's sync.Mutex to one who has waited for 1 ms.
 */
static __attribute__((noinline, cold)) void yield_to_woken(const struct fg_lock *l, struct fg_self *t,
							const struct fg_deadline *deadline)
{
	struct fg_thread *me = fg_thread_mine(t);
	struct fg_deadline soon;
	uint32_t i, nobody = 0;

	if (me->busy_lock != (uint32_t)address(l))
		return;
	me->yields = 0;
	for (i = 0; i < YIELD_SLEEPS && !(fg_load_relaxed(&l->word) & FG_WORD_ID); i++) {
		if ((uint32_t)(fg_now_ns() / 1000) - t->turn_us >= GRACE_US)
			return;
		if (deadline && fg_deadline_passed(deadline))
			return;
		fg_deadline_in(&soon, SHORT_SLEEP_NS << i);
		/* Not on the count of wake-ups: those are for sleepers. */
		fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &soon);
	}
}

static __attribute__((noinline)) int lock_slow(struct fg_lock *l, struct fg_self *t,
						 const struct fg_deadline *deadline)
{
	uint64_t prev;

	round_ends(t);
	if (fg_has_slot(t) && fg_unlikely(fg_thread_mine(t)->yields))
		yield_to_woken(l, t, deadline);
	prev = announce_once(l, t);
	/* Free, perhaps with sleepers or with a head that is about to take it: barge. */
	if (!take(l, t, 0, 0)) {
		bool as_head = false;
		int r = lock_contended(l, t, deadline, &as_head);

		if (r) {
			not_acquired(t, prev);
			return r;
		}
		if (as_head && t->only == address(l))
			round_begins(t);
	}
	acquired(l, t, prev);
	return 0;
}

__attribute__((noinline)) int _fg_lock_slow(struct fg_lock *l, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();

	return lock_nested(l, t) ? 0 : lock_slow(l, t, deadline);
}

__attribute__((noinline)) bool _fg_trylock_slow(struct fg_lock *l)
{
	struct fg_self *t = fg_self();
	uint64_t prev = announce_once(l, t);

	if (!take(l, t, 0, 0)) {
		not_acquired(t, prev);
		return false;
	}
	acquired(l, t, prev);
	return true;
}

void _fg_lock_adopt(struct fg_lock *l, uint32_t former)
{
	struct fg_self *t = fg_self();
	uint64_t prev = announce_once(l, t);
	uint32_t w = fg_load_relaxed(&l->word);

	while ((w & FG_WORD_ID) == former && !fg_cas_relaxed(&l->word, &w, (w & ~FG_WORD_ID) | t->id))
		;
	acquired(l, t, prev);
}

/* ---- release --------------------------------------------------------------- */

/*
 * Others sleep, and somebody checks the lock.  False: wake one all the
 * same, because this thread has had its turn, or (with nobody spinning) because
 * it does not release this very lock often enough to keep it busy.  While it
 * does, the clock is read at one release in 16 only.
 */
static bool leave_asleep(const struct fg_lock *l, struct fg_self *t, uint32_t word)
{
	struct fg_thread *me = fg_id_has_slot(t->id) ? fg_thread_mine(t) : NULL;
	bool same;
	uint32_t now;

	if (!me) /* then never "busy" either */
		return word & FG_WORD_SPINNER;
	same = me->busy_lock == (uint32_t)address(l);
	if (t->busy && same && t->releases++)
		return true;
	me->yields &= same;
	me->busy_lock = (uint32_t)address(l);
	now = (uint32_t)(fg_now_ns() / 1000);
	t->busy = same && now - t->busy_us < (t->busy ? 16 : 1) * BUSY_US;
	t->busy_us = now;
	if (fg_unlikely(now - t->turn_us >= TURN_US)) {
		if (t->turn_over) {
			t->turn_over = 0;
			t->turn_us = now;
			me->yields = 1;
			return false;
		}
		t->turn_over = 1;
		t->turn_us = now - TURN_US + GRACE_US;
	}
	return t->busy || (word & FG_WORD_SPINNER);
}

/* Has woken somebody for this lock.  True if its next lock should look whether it has to yield. */
static bool turn_is_over(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me;
	uint32_t now;

	if (!fg_has_slot(t))
		return false;
	me = fg_thread_mine(t);
	now = (uint32_t)(fg_now_ns() / 1000);
	if (now - t->turn_us >= TURN_US) {
		t->turn_us = now;
		t->busy &= me->busy_lock == (uint32_t)address(l);
		me->busy_lock = (uint32_t)address(l);
		me->yields = 1;
	}
	return me->yields;
}

void _fg_lock_going_away(const struct fg_lock *l)
{
	struct fg_self *t = fg_self();

	if (!fg_id_has_slot(t->id))
		return;
	if (fg_thread_mine(t)->busy_lock == (uint32_t)address(l)) {
		fg_thread_mine(t)->busy_lock = 0;
		fg_thread_mine(t)->yields = 0;
		t->busy = 0;
	}
}

/*
 * Clears the owner.  Returns true if a sleeper has to be woken.
 *
 * A waiter reads the count of wake-ups, makes sure that WAITERS is set, and
 * sleeps if the count is still the same.  So a wake-up that clears WAITERS does
 * it in three steps: clear it while the lock is held, count, release.  Who has
 * set it before the first step has an old count; who sets it after that makes
 * the third step fail, and all is done again.
 */
static bool release(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	bool wake = false, asked = false, leave = false;

	if (__libc_single_threaded && _fg_release_alone(l, t->id))
		return false;
	for (;;) {
		if (!(w & FG_WORD_WAITERS)) {
			/* The designated waiter's obligation goes on, whoever is woken. */
			if (fg_cas_release(&l->word, &w, w & FG_WORD_DESIGNATED))
				return wake;
			continue;
		}
		if (!asked && (w & FG_WORD_DESIGNATED)) {
			leave = leave_asleep(l, t, w);
			asked = true;
		}
		if (leave && (w & FG_WORD_DESIGNATED)) {
			if (fg_cas_release(&l->word, &w, w & ~FG_WORD_ID)) {
				if (!wake)
					fg_count(t, FG_STAT_WAKEUPS_SAVED, 1);
				return wake;
			}
		} else if (fg_cas_acq_rel(&l->word, &w, w & (FG_WORD_ID | FG_WORD_DESIGNATED))) {
			/* Release: who sees the new count sees WAITERS cleared (prepare_sleep). */
			fg_store_release(&l->wakes, l->wakes + 1);
			wake = true;
			w &= FG_WORD_ID | FG_WORD_DESIGNATED;
		}
	}
	/* After each return the lock may be gone. */
}

/* A lock that this thread does not hold: what glibc does with normal mutexes, which programs use. */
static void unlock_for_owner(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	uint32_t owner = w & FG_WORD_ID;

	if (!owner)
		return;
	if (fg_id_has_slot(owner))
		fg_thread_released_for(owner);
	if (release(l, t, w))
		wake_one(l, t, false);
}

/*
 * The usual release while others sleep: the designated waiter checks the lock, this
 * thread keeps it busy, and it is not time to look at the clock.  What release()
 * would do, without the rest.
 */
static bool release_busy(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	if (!(w & FG_WORD_WAITERS) || !(w & FG_WORD_DESIGNATED) || !keeps_busy(l, t) || t->releases == 0 || t->timing)
		return false;
	fg_set_cs(t, 0);
	if (!fg_cas_release(&l->word, &w, w & ~FG_WORD_ID))
		return false;
	t->releases++;
	fg_count(t, FG_STAT_WAKEUPS_SAVED, 1);
	/* "Several", with none held: the next lock finds flags again and need not try the fast path. */
	t->held = 0;
	t->pending = 0;
	fg_fence_local();
	t->only = FG_ONLY_SEVERAL;
	fg_set_pending(t, 0);
	return true;
}

/*
 * The common case again: the latest of several locks, or one that was taken the
 * slow way, and nobody sleeps.  The look at the word is for a spinning waiter: a
 * CAS that fails would pull the line from it for nothing.
 */
static inline bool unlock_nested(struct fg_lock *l, struct fg_self *t)
{
	uint32_t mine = t->id, held = t->held;
	uint64_t prev;

	if (t->only != FG_ONLY_SEVERAL || t->pending != address(l) || !held || t->unordered ||
	    fg_load_relaxed(&l->word) != mine)
		return false;
	prev = l->prev; /* cs has not counted this lock yet */

	if (__libc_single_threaded ? !_fg_release_alone(l, mine) : !fg_cas_release(&l->word, &mine, 0))
		return false;
	publish(t, held - 1, prev);
	if (held == 1)
		round_releases(t);
	return true;
}

static __attribute__((noinline)) void unlock_slow(struct fg_lock *l, struct fg_self *t)
{
	uint32_t w = fg_load_relaxed(&l->word), held;
	uint64_t pending = pending_of(t), prev;
	bool over = false;

	if ((w & FG_WORD_ID) != t->id) {
		unlock_for_owner(l, t, w);
		return;
	}
	/* Not 0: the count is of 16 bits, and of what others say that they have released. */
	held = t->only == FG_ONLY_SEVERAL && t->held ? t->held : 1;
	if (held == 1 && pending == address(l) && release_busy(l, t, w))
		return;
	if (pending != address(l)) { /* not the latest: what is pending stays so */
		prev = pending;
		t->unordered = held > 2;
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
	if (release(l, t, w)) {
		wake_one(l, t, false);
		over = turn_is_over(l, t);
	}
	publish(t, held - 1, prev);
	if (held == 1) {
		round_releases(t);
		if (over)
			next_goes_slowly(t);
	}
}

__attribute__((noinline)) void _fg_unlock_slow(struct fg_lock *l)
{
	struct fg_self *t = fg_self();

	if (!unlock_nested(l, t))
		unlock_slow(l, t);
}
