/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h): waiting for it.  A waiter spins in the
 * queue while fg_decide() says so and sleeps otherwise.  No sleep is for ever: each has a time
 * limit, and a reason for it (enum reason), which says what the waiter does when it has passed.
 * (Sleeps to give way, give_way.h, and to back off are for a time only, and nobody ends them.)
 *
 * Constants were measured on a 2-CPU VM with Linux 6.18, those that say so were not varied.  Titles
 * in quotation marks: docs/design/experiments.md.
 */
#include <errno.h>

#include "lock/attempt.h"
#include "lock/foreign_process.h"
#include "lock/give_way.h"
#include "lock/offer.h"
#include "lock/queue.h"
#include "lock/rounds.h"
#include "runtime/cpus.h"
#include "sys/probe.h"

/*
 * A thread that goes to sleep first sleeps for a short time, so often: if the CPU that it left is
 * not in use by another thread of the process afterwards, it comes back ("Keep all CPUs in use").
 * Not varied.
 */
#define SHORT_SLEEPS 2

/*
 * The designated waiter's time limit; doubled, DESIGNATED_MAX_NS at most, while it finds the same
 * owner.  The kernel's timer for 1 ms costs a microsecond, for 4 ms and more nothing that could be
 * measured ("Time limits by length").
 */
#define DESIGNATED_NS	  1000000u
#define DESIGNATED_MAX_NS 4000000u
/* then the lock is held for long, and its release will wake somebody; not varied */
#define SAME_OWNER 8

/*
 * One check in so many comes to stay although there seems to be no CPU for it: one may be found.
 * Not varied.
 */
#define PROBE_EVERY 8

/*
 * A waiter with a deadline looks at the lock each time that a quarter of what was left has passed:
 * ever more often, some ten times in 20 ms and twice as often in a second.  Not varied; how often
 * such waiters get the lock with and without: docs/design/lock.md, "Waiters with a deadline".
 */
#define TIMED_PART 4u
#define TIMED_NS   1000000u

/*
 * Everybody else checks periodically, at first after PERIODIC_NS and then at intervals four times
 * as long each time; not after a sleep that somebody has ended, of which there may be dozens in a
 * few ms.  That is for the one thread that others rely on and that is kept off its CPU:
 * the designated waiter; one that has been woken, until it takes the lock; one between a release
 * and its wake-up.  Above 4 ms a limit costs nothing ("Time limits by length"); not varied.
 */
#define PERIODIC_MAX_NS 8192000000u
/* Checks would make up for what is wrong before the tests can notice. */
#if defined(FG_BROKEN_WAKE) || defined(FG_BROKEN_LATE)
#define PERIODIC_NS PERIODIC_MAX_NS
#else
#define PERIODIC_NS 8000000u
#endif

/*
 * Where a process has more threads than this for each CPU whose time it may use, thousands may
 * sleep for one lock, and what each looks after by itself is a CPU's work in all.  With twice as
 * many one in two sleeps for a short time, and the first check is after twice as long, and so on.
 * 4 and 8 are as good, 64 is too many ("Thousands of sleepers").
 */
#define CROWD 16u

/*
 * In the child of a fork the designated waiter may be a thread of the parent, or it has ended in
 * its wait: one that finds a designated waiter there sleeps so long, or until its periodic check if
 * that is later.  Not varied.
 */
#define LOST_NS 100000000u

/* A thread has ended in the middle of a wait, or with a lock.  Ever: few do. */
static uint32_t waiter_lost;

/*
 * How long to sleep for an owner that is no thread of this process, before it is looked at again.
 * Not varied.
 */
#define FOREIGN_NS 1000000000u

/*
 * A look at the lock's line that takes so long stands in a row with those of dozens of other CPUs;
 * whoever made it goes away for so many times as long.  Of 4, 16 and 32 all end the row, and more
 * leaves the lock idle (simulated: docs/design/many-cpus.md, "When all go at once").
 */
#define ROW_NS	10000u
#define ROW_FOR 4u
/* Then it sleeps for the lock, whatever takes so long: it may be the clock.  Not varied. */
#define ROWS_MOST 8u

/* Goes without the lock, and leaves no obligation behind.  True if it got the lock after all. */
static bool drop_obligation(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t bit = a->obligation;

	a->obligation = 0;
	if (!(fg_load_relaxed(&l->word) & bit))
		return false;
	fg_and_relaxed(&l->word, ~bit);
	/* Free: released to us; the releaser has left the sleepers asleep because of us. */
	return take_over(l, t, a);
}

/*
 * May this thread sleep on beside a lock that is free?  It is as if it had slept on before the
 * release: WAITERS stands, and the designated waiter, another thread, looks after the lock.
 */
static bool may_leave_free(const struct attempt *a, uint32_t w)
{
#ifdef FG_BROKEN_LEAVES /* nobody looks after the lock */
	return a->makes_room;
#endif
	return a->makes_room && !a->obligation &&
	       (w & FG_WORD_LEAVES_ASLEEP) == FG_WORD_LEAVES_ASLEEP;
}

/*
 * Sets the bits with which this thread goes to sleep: WAITERS, and DESIGNATED if it
 * becomes the designated waiter.  A lock that nobody keeps busy needs no such waiter, and its
 * time limit costs a timer; so there is none before a wake-up has been in vain, unless this
 * thread has kept the lock busy itself.  SPINNER is cleared, whichever thread has set it: a head
 * that still spins sets it again; one that does not (this thread, or one of the parent of a fork)
 * would keep everybody asleep for ever.  Returns the word, or 0 with the lock;
 * in *wakes what to sleep on.
 */
static uint32_t prepare_sleep(struct fg_lock *l, struct fg_self *t, struct attempt *a,
			      uint32_t *wakes)
{
	uint32_t obligation = a->obligation & FG_WORD_DESIGNATED, clear, w;

	/* Before the look at the word: see release(). */
	*wakes = fg_load_acquire(&l->wakes);
	w = fg_load_relaxed(&l->word);
	if (may_leave_free(a, w))
		return w;
	if (take_read(l, t, a, &w, FG_WORD_SPINNER, 0))
		return 0;
	/*
	 * Bit by bit, and no compare-and-swap: under a fast owner those of many waiters hardly ever
	 * succeed, and keep the line from it.
	 */
	if (!(w & FG_WORD_WAITERS))
		fg_or_acq_rel(&l->word, FG_WORD_WAITERS);
	if (a->may_be_designated && !(w & FG_WORD_DESIGNATED) && (a->in_vain || keeps_busy(l, t)) &&
	    !(fg_or_acq_rel(&l->word, FG_WORD_DESIGNATED) & FG_WORD_DESIGNATED))
		obligation = FG_WORD_DESIGNATED;
	clear = FG_WORD_SPINNER;
	if (!a->may_be_designated) {
		clear |= obligation;
		obligation = 0;
	}
	w = fg_load_acquire(&l->word);
	if (w & clear) {
		fg_and_acq_rel(&l->word, ~clear);
		w = fg_load_acquire(&l->word);
	}
	a->obligation = obligation;
	if (take_read(l, t, a, &w, FG_WORD_SPINNER, 0))
		return 0;
	return w;
}

/*
 * Woken by a release, which has cleared WAITERS for all.  It must be set again,
 * by taking the lock with it or on the lock of another, before anything else is
 * done: other sleepers depend on it.  True with the lock.
 */
static bool retake(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t w = fg_load_relaxed(&l->word);

	if (take_read(l, t, a, &w, 0, FG_WORD_WAITERS))
		return true;
	if (w & FG_WORD_WAITERS)
		return false;
	/* No compare-and-swap, as in prepare_sleep(): one took ms, with a journey each way. */
	fg_or_relaxed(&l->word, FG_WORD_WAITERS);
	return take_over(l, t, a);
}

/* Why a sleep ends by itself. */
enum reason {
	DEADLINE,	  /* the attempt's own has passed */
	DEADLINE_NEARER,  /* part of the way to it: look, and come to stay */
	SHORT_SLEEP,	  /* is there a CPU for this thread? */
	DESIGNATED_CHECK, /* the others rely on this one to look */
	LOST_WAITER,	  /* the designated waiter may be a thread that is not here any more */
	FOREIGN_OWNER,	  /* no thread of this process will wake anybody */
	PERIODIC_CHECK,	  /* of anybody else */
};

struct time_limit {
	struct fg_deadline deadline;
	enum reason reason;
};

/*
 * A reader at the gate of a reader-writer lock, which tries another way after some ms: its limit is
 * its periodic check.  32 of them that look ever more often, or are designated, cost a lock with 1
 * % writes a third of its sections (empty ones; 2-CPU VM).
 */
static bool tries_again(const struct attempt *a)
{
	return a->deadline && a->deadline->internal;
}

/* How many times CROWD threads a CPU there are; 1: fewer than twice that. */
static uint32_t crowd(void)
{
	uint32_t threads = fg_threads_now();

	if (fg_likely(threads <= CROWD))
		return 1;
	threads /= CROWD * fg_cpus_allotted();
	return threads ? threads : 1;
}

/* Its reason to look, if it had all the time in the world. */
static enum reason reason_to_look(const struct fg_self *t, const struct attempt *a, uint32_t asleep,
				  uint32_t wakes)
{
	if (a->may_be_designated && (asleep & FG_WORD_DESIGNATED) &&
	    a->short_sleeps < SHORT_SLEEPS && !fg_displaces(t) &&
	    (fg_id_index(t->id) + wakes) % crowd() == 0)
		return SHORT_SLEEP;
	if (a->obligation & FG_WORD_DESIGNATED)
		return DESIGNATED_CHECK;
	if ((asleep & FG_WORD_DESIGNATED) && fg_unlikely(fg_epoch || fg_load_relaxed(&waiter_lost)))
		return LOST_WAITER;
	if (fg_unlikely(_fg_held_by_foreign_process(asleep)))
		return FOREIGN_OWNER;
	return PERIODIC_CHECK;
}

/* How long it sleeps for that; short sleeps and periodic checks become longer. */
static uint64_t time_for(struct attempt *a, enum reason reason)
{
	switch (reason) {
	case SHORT_SLEEP: return SHORT_SLEEP_NS << 2 * a->short_sleeps++;
	case DESIGNATED_CHECK:
		if (!a->designated_ns)
			a->designated_ns = DESIGNATED_NS;
		return a->designated_ns;
	case FOREIGN_OWNER: return FOREIGN_NS;
	default:
		if (!a->check_ns)
			a->check_ns = (uint64_t)PERIODIC_NS * crowd();
		if (a->check_ns > PERIODIC_MAX_NS)
			a->check_ns = PERIODIC_MAX_NS;
		return reason == LOST_WAITER && a->check_ns < LOST_NS ? LOST_NS : a->check_ns;
	}
}

/*
 * A deadline of CLOCK_REALTIME may pass because somebody sets that clock, and a sleep for another
 * reason, by a clock that nobody sets, does not notice.  So it is no longer than this.  Not varied.
 */
#define CLOCK_SET_NS 250000000u

/* How long this sleep may last by itself, and why no longer. */
static struct time_limit time_limit(const struct fg_self *t, struct attempt *a, uint32_t asleep,
				    uint32_t wakes)
{
	struct time_limit limit = {.reason = DEADLINE};
	uint64_t left, ns = 0;

	if (!tries_again(a)) {
		limit.reason = reason_to_look(t, a, asleep, wakes);
		ns = time_for(a, limit.reason);
		left = fg_deadline_left(a->deadline);
		if (left / TIMED_PART < ns && !a->deadline->unlikely) {
			ns = left / TIMED_PART > TIMED_NS ? left / TIMED_PART : TIMED_NS;
			limit.reason = DEADLINE_NEARER;
		}
		if (a->deadline && a->deadline->clock == CLOCK_REALTIME && ns > CLOCK_SET_NS)
			ns = CLOCK_SET_NS;
		if (left <= ns)
			limit.reason = DEADLINE;
	}
	if (limit.reason == DEADLINE)
		limit.deadline = *a->deadline;
	else
		fg_deadline_in(&limit.deadline, ns);
	return limit;
}

/* Its time limit has passed: it looks at the word first of all. */
static bool found_free(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	if (take_over(l, t, a))
		return true;
	a->in_vain = true; /* the next designated waiter, if there is none */
	return false;
}

/* How many checks in a row have found the same owner? */
static void note_owner(const struct fg_lock *l, struct attempt *a)
{
	uint32_t owner = fg_load_relaxed(&l->word) & FG_WORD_ID;

	if (owner != a->seen) {
		a->seen = owner;
		a->same = 0;
		a->designated_ns = DESIGNATED_NS;
		return;
	}
	if (a->designated_ns < DESIGNATED_MAX_NS)
		a->designated_ns *= 2;
	a->same++;
}

/* Nobody has woken it. */
static enum outcome time_is_up(struct fg_lock *l, struct fg_self *t, struct attempt *a,
			       enum reason reason)
{
	bool room;

	if (reason == PERIODIC_CHECK || reason == LOST_WAITER)
		a->check_ns *= 4;
	switch (reason) {
	case DEADLINE: return TIMED_OUT;
	case LOST_WAITER:
		/* ours to clear now; a living waiter would only be one too many */
		a->obligation = FG_WORD_DESIGNATED;
		return drop_obligation(l, t, a) ? ACQUIRED : UNDECIDED;
	case FOREIGN_OWNER: _fg_report_foreign_process(l); return UNDECIDED;
	case PERIODIC_CHECK: return found_free(l, t, a) ? ACQUIRED : SLEEP_AGAIN;
	case SHORT_SLEEP:
	case DESIGNATED_CHECK:
		room = fg_has_room(t);
		/* It came to see whether there is a CPU for it, and not for the lock. */
		a->makes_room = reason == SHORT_SLEEP && !room;
		if (a->makes_room)
			return SLEEP_AGAIN;
		if (found_free(l, t, a))
			return ACQUIRED;
		note_owner(l, a);
		if (!room && ++a->no_room % PROBE_EVERY)
			return SLEEP_AGAIN;
		break; /* there is room */
	case DEADLINE_NEARER:
		if (found_free(l, t, a))
			return ACQUIRED;
		note_owner(l, a);
		break; /* there is little time */
	}
	has_slept(t, fg_now_ns());
	return UNDECIDED; /* come and stay */
}

/*
 * At a tick hundreds may go to sleep at once, with some looks at the lock's line each, and the
 * release of the owner that they wait for stands behind these.  So one whose first look takes long
 * sleeps for a time first, not for the lock, and then decides anew: the later in the row, the
 * longer, so that they come back one after the other.  That is the ticket lock's proportional
 * backoff (Mellor-Crummey, Scott, TOCS 1991), by the time that the row has taken.  Nobody knows of
 * such a sleep, or has to end it: it is as if this thread had come so much later.  One with an
 * obligation stays, for others rely on it, and so does one with a deadline.
 */
static bool back_off(const struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t cpus = fg_many_cpus(), nobody = 0;
	struct fg_deadline end;
	uint64_t since, now;

	if (fg_likely(!cpus) || a->obligation || a->deadline || a->rows == ROWS_MOST)
		return false;
	since = fg_now_ns();
	/* Free: to take it is all there is to do.  By what it reads, so that the clock is later. */
	if (!(fg_load_relaxed(&l->word) & FG_WORD_ID))
		return false;
	now = fg_now_ns();
	/* No row is longer than all CPUs, a journey each: what takes longer lost its own CPU. */
	if (now - since < ROW_NS || now - since > (uint64_t)cpus * FG_JOURNEY_MOST_NS)
		return false;
	a->rows++;
	fg_set_pending(t, 0); /* as in sleep_on() */
	fg_deadline_in(&end, (now - since) * ROW_FOR);
	fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &end);
	fg_set_pending(t, address(l));
	slept_by_itself(t, a, fg_now_ns() - now);
	return true;
}

static enum outcome sleep_on(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint64_t since = fg_now_ns(), until;
	struct time_limit limit;
	uint32_t wakes, asleep;
	int r;

	a->may_be_designated = !tries_again(a) && fg_policy_now != FG_POLICY_BLOCK &&
			       a->same <= SAME_OWNER && !_fg_rounds_wake_each_time(t);
	asleep = prepare_sleep(l, t, a, &wakes);
	a->makes_room = false;
	if (!asleep)
		return ACQUIRED;
	limit = time_limit(t, a, asleep, wakes);
	/*
	 * Asleep it takes nothing.  So the monitor need not read the word at the switch, nor a
	 * waiter that knows this thread as an earlier owner (may_hold in lock_spin.c).
	 */
	fg_set_pending(t, 0);
	r = fg_futex_wait(&l->wakes, wakes, channel(t), &limit.deadline);
	fg_set_pending(t, address(l));
	until = fg_now_ns();
	fg_count(t, FG_STAT_BLOCKED_NS, until - since);
	if (r != -EAGAIN) {
		a->slept = true;
		fg_count(t, FG_STAT_PARKS, 1);
	}
	if (r == -ETIMEDOUT)
		return time_is_up(l, t, a, limit.reason);
	if (r) {
		/* Woken before it slept: without a designated waiter that may go on for long. */
		a->in_vain |= r == -EAGAIN;
		return UNDECIDED;
	}
	has_slept(t, until);
	_fg_rounds_woken(t, until);
	a->same = a->short_sleeps = 0;
	a->in_vain = true;
	return retake(l, t, a) ? ACQUIRED : UNDECIDED;
}

/* `looked`: alone.  0, or ETIMEDOUT. */
static __attribute__((noinline, cold)) int wait_for(struct fg_lock *l, struct fg_self *t,
						    uint32_t *seen,
						    const struct fg_deadline *deadline, bool looked,
						    bool may_offer, bool *as_head)
{
	/*
	 * A signal handler may wait while its thread waits: the outer wait's role comes back at
	 * the end.
	 */
	enum fg_role outer_role = t->role;
	uint64_t outer_node = t->slot->node;
	struct attempt a = {.wait.self = t, .deadline = deadline, .may_offer = may_offer};
	bool is_event = deadline && deadline->is_event;
	enum outcome o = UNDECIDED;
	bool spun = false;

	if (fg_has_slot(t)) {
		/* Without a role: on its way from the head to the standby, which offers as well. */
		if (fg_unlikely(outer_role != FG_ROLE_NONE) || fg_unlikely(_fg_offer_is_made(t)))
			_fg_offer_none_below(t);
		_fg_offer_put_away(t);
	}
	if (fg_unlikely(t->turn_over) && !is_event) {
		/* Its sleep comes first thing below; no short one. */
		wake_one(l, t, true);
		a.short_sleeps = SHORT_SLEEPS;
		o = SLEEP_AGAIN;
		t->turn_over = 0;
	} else if (_fg_gives_way(l, t, &a, *seen)) {
		*seen = fg_load_relaxed(&l->word);
	}
	while (o == UNDECIDED || o == SLEEP_AGAIN) {
		a.wait.yields = is_event;
		if (o == UNDECIDED && !looked && !a.obligation &&
		    _fg_lock_look_alone(l, t, seen, deadline)) {
			a.taken = *seen;
			o = ACQUIRED;
		} else if (o == UNDECIDED) {
			a.wait.owner = *seen & FG_WORD_ID;
			/* In this order: a look would cost the owner its line, mostly in vain. */
			a.wait.follows = fg_is_rationed() && fg_load_relaxed(&l->tail);
			if (fg_decide(&a.wait) == FG_SPIN)
				o = _fg_lock_spin(l, t, &a);
		}
		looked = false;
		spun = o == ACQUIRED;
		/* What it waits for may come by a wake-up elsewhere: it does not sleep here. */
		if (o == UNDECIDED && is_event)
			o = TIMED_OUT;
		if (o == UNDECIDED || o == SLEEP_AGAIN) {
			/* One that goes on with a sleep, or sleeps in another's place, does so. */
			if (o == UNDECIDED && _fg_lock_keep_away(l, t, &a)) {
				spun = true;
				o = ACQUIRED;
			} else if (o == SLEEP_AGAIN || !back_off(l, t, &a)) {
				a.rows = 0;
				o = sleep_on(l, t, &a);
			}
			a.wait = (struct fg_wait){.self = t};
		}
		if (o == UNDECIDED)
			*seen = fg_load_relaxed(&l->word);
	}
	/* On its way to sleep, too: what the lock is like it has to learn there as well. */
	*as_head = o == ACQUIRED && (spun || !a.slept);
	if (!*as_head && t->times_head == 0)
		t->times_head++; /* no timing at each of its waits, if all end in a sleep */
	/* A gate is a part of the wait for something else, which is counted there. */
	if (spun && !a.slept && !(deadline && deadline->unlikely))
		fg_count(t, FG_STAT_SPUN, 1);
#ifdef FG_BROKEN_LATE /* others rely on it; a test proves that the tests notice */
	if (o == TIMED_OUT)
		a.obligation = 0;
#endif
	/* At its deadline a thread takes a free lock all the same, promised or not. */
	if (o == TIMED_OUT && (drop_obligation(l, t, &a) || take_over(l, t, &a)))
		o = ACQUIRED;
	if (fg_unlikely(outer_role != FG_ROLE_NONE)) {
		fg_store_relaxed(&t->slot->node, outer_node);
		fg_set_role(t, outer_role);
	}
	*seen = a.taken;
	return o == ACQUIRED ? 0 : ETIMEDOUT;
}

int _fg_lock_contended(struct fg_lock *l, struct fg_self *t, uint32_t *word,
		       const struct fg_deadline *deadline, bool may_offer, bool *as_head)
{
	bool is_gate = deadline && deadline->unlikely, looks = !t->turn_over && !fg_shares_cpu(t);
	int r = 0;

	if (!is_gate) {
		fg_count_contended(t);
		FG_PROBE1(contended, l);
	}
	/* The usual end of a wait, without what a longer one needs. */
	if (looks && _fg_lock_look_alone(l, t, word, deadline)) {
		*as_head = true;
		if (!is_gate)
			fg_count(t, FG_STAT_SPUN, 1);
	} else {
		r = wait_for(l, t, word, deadline, looks, may_offer, as_head);
	}
	if (!is_gate)
		FG_PROBE2(acquired, l, r);
	return r;
}

void _fg_lock_thread_ends(struct fg_self *t)
{
	if (locks_announced(t))
		fg_store_relaxed(&waiter_lost, 1);
	_fg_queue_thread_ends(t);
	_fg_offer_thread_ends(t);
}
