/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h): releasing it.  In contrast to the paper's
 * listing a release does not wake anybody as long as the threads that are awake keep the
 * lock busy: on a machine with N CPUs about N threads take the lock in turn without any
 * system call, and the others sleep.  (Where rounds are short only if they would do so too often:
 * rounds.h.)  Four things keep that honest:
 *
 *   - sleepers are left asleep only while one of them, the designated waiter, sleeps
 *     with a time limit and checks the lock every few ms.  The spinning head is not enough: the
 *     scheduler may keep it off its CPU for as long as it likes;
 *   - only a thread that releases the lock often leaves it to the designated waiter alone;
 *   - no sleep is for ever, so that this holds for any other thread, too;
 *   - a thread that has had its turn wakes the longest sleeper and sleeps in
 *     its place when it next has to wait, or yields to it if it need not (lock_paths.h).
 *
 * Culling waiters and re-admitting them: Dice, "Malthusian Locks", EuroSys 2017.
 * There a queue is culled at each hand-over; here the scheduler's decisions cull
 * (a preempted critical path makes waiters sleep), and sleep is the passive set.
 */
#include "lock/held.h"
#include "lock/lock_paths.h"
#include "lock/offer.h"
#include "lock/rounds.h"
#include "runtime/slice.h"

/*
 * Measured on a 2-CPU VM with Linux 6.18.  Titles in quotation marks: docs/design/experiments.md.
 *
 * A thread that releases a lock less often than this wakes a sleeper each time.  A wake-up takes 76
 * us.  Not varied.
 */
#define BUSY_NS 50000u

/* Not varied. */
#define TURN_SECTIONS 16u
#define TURN_MAX_NS   (8 * TURN_NS)

/*
 * One release in so many reads the clock: 27 ns of a section of 60 ("Reading the clock at each
 * release").
 */
#define BUSY_LOOKS 16u
_Static_assert(BUSY_LOOKS == 16, "fg_self.busy_releases wraps there");

static void tell_free(uint32_t index)
{
	fg_store_relaxed(&fg_thread_of(index)->notice, FG_NOTICE_FREE);
}

/*
 * The standby does not look at the word, but waits to be told (lock_spin.c).  Told right before the
 * release, it comes for the word when that is free; told sooner it would come in vain, and look on.
 */
static void tell_standby(const struct fg_lock *l, const struct fg_self *t)
{
	if (has_standby(t, address(l)))
		tell_free(fg_thread_mine(t)->notifies);
}

/*
 * In a long queue a thread has but few sections in TURN_NS, and to change places with a sleeper
 * costs a dozen journeys of lines: a turn is of some sections then.
 */
static uint32_t turn_in_queue(uint32_t since_last_us)
{
	uint32_t most = TURN_MAX_NS / 1000 / TURN_SECTIONS, ns;

	ns = (since_last_us < most ? since_last_us : most) * 1000 * TURN_SECTIONS;
	return ns > TURN_NS ? ns : TURN_NS;
}

/*
 * Others sleep, and somebody checks the lock.  False: wake one all the
 * same, because this thread has had its turn, or (with nobody spinning) because
 * it does not release this very lock often enough to keep it busy.  While it
 * does, the clock is read at one release in BUSY_LOOKS only.
 */
static bool leave_asleep(const struct fg_lock *l, struct fg_self *t, uint32_t word, bool given)
{
	struct fg_thread *me = fg_id_has_slot(t->id) ? fg_thread_mine(t) : NULL;
	bool same, in_queue;
	uint32_t now, since, turn_ns;

	if (!me) /* then never "busy" either */
		return word & FG_WORD_SPINNER;
	same = me->kept_busy == (uint32_t)address(l);
	if (t->keeps_busy && same && !given && t->busy_releases++)
		return true;
	me->yields &= same;
	me->kept_busy = (uint32_t)address(l);
	now = turn_clock(fg_now_ns());
	t->keeps_busy = same &&
			!are_apart(now, t->released_us, (t->keeps_busy ? BUSY_LOOKS : 1) * BUSY_NS);
	/* One that is given the lock comes here at a part of its releases. */
	in_queue = given || has_standby(t, address(l));
	since = (now - t->released_us) / (given ? LOOKS_ASLEEP : 1);
	turn_ns = in_queue ? turn_in_queue(since) : TURN_NS;
	t->released_us = now;
	if (fg_unlikely(are_apart(now, t->turn_began_us, turn_ns))) {
		if (t->turn_over) {
			t->turn_over = 0;
			t->turn_began_us = now;
			me->yields = 1;
			return false;
		}
		t->turn_over = 1;
		/* over again after the grace */
		t->turn_began_us = now - (TURN_NS - TURN_GRACE_NS) / 1000;
	}
	/* The standby has been told: it is awake, and has not had to touch the word for it. */
	return t->keeps_busy || (word & FG_WORD_SPINNER) || in_queue;
}

/* After a wake-up for this lock.  True if this thread's next lock has to look whether to yield. */
static bool turn_is_over(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me;
	uint32_t now;

	if (!fg_has_slot(t))
		return false;
	me = fg_thread_mine(t);
	now = turn_clock(fg_now_ns());
	if (are_apart(now, t->turn_began_us, TURN_NS)) {
		t->turn_began_us = now;
		t->keeps_busy &= me->kept_busy == (uint32_t)address(l);
		me->kept_busy = (uint32_t)address(l);
		me->yields = 1;
	}
	return me->yields;
}

void _fg_lock_going_away(const struct fg_lock *l)
{
	struct fg_self *t = fg_self();

	if (!fg_id_has_slot(t->id))
		return;
	if (fg_thread_mine(t)->kept_busy == (uint32_t)address(l)) {
		fg_thread_mine(t)->kept_busy = 0;
		fg_thread_mine(t)->yields = 0;
		t->keeps_busy = 0;
	}
}

/*
 * Clears the owner.  Returns true if a sleeper has to be woken.
 *
 * A waiter reads the count of wake-ups, makes sure that WAITERS is set, and
 * sleeps if the count is still the same.  So a wake-up that clears WAITERS does
 * it in three steps: clear it while the lock is held, count, release.  A waiter that
 * has set it before the first step has an old count; one that sets it after that
 * makes the third step fail, and all is done again.
 */
static bool release(struct fg_lock *l, struct fg_self *t, uint32_t w, bool given)
{
	struct fg_thread *me = fg_id_has_slot(t->id) ? fg_thread_mine(t) : NULL;
	bool wake = false, asked = false, leave = false;

	if (__libc_single_threaded && _fg_release_alone(l, t->id))
		return false;
	for (;;) {
		if (!(w & FG_WORD_WAITERS)) {
			tell_standby(l, t);
			/* The designated waiter's obligation goes on, whoever is woken. */
			if (fg_cas_release(&l->word, &w, w & FG_WORD_OUTLIVES))
				return wake;
			continue;
		}
		if (!asked && (w & FG_WORD_DESIGNATED)) {
			leave = !_fg_rounds_wake_each_time(t) && leave_asleep(l, t, w, given);
			asked = true;
		}
		if (leave && (w & FG_WORD_DESIGNATED)) {
			tell_standby(l, t);
			if (fg_cas_release(&l->word, &w, w & ~FG_WORD_ID)) {
				if (!wake)
					fg_count(t, FG_STAT_WAKEUPS_SAVED, 1);
				return wake;
			}
		} else if (fg_cas_acq_rel(&l->word, &w, w & ~FG_WORD_WAKEUP_CLEARS)) {
			/* Release: with the new count WAITERS is seen cleared (prepare_sleep). */
			fg_store_release(&l->wakes, l->wakes + 1);
			if (me)
				me->woke = (uint16_t)l->wakes;
			wake = true;
			w &= ~FG_WORD_WAKEUP_CLEARS;
		}
	}
	/* After each return the lock may be gone. */
}

/*
 * The usual release while others sleep: the designated waiter checks the lock, this
 * thread keeps it busy, and it is not time to look at the clock.  What release()
 * would do, without the rest.
 */
static bool release_busy(struct fg_lock *l, struct fg_self *t, uint32_t w)
{
	if ((w & FG_WORD_LEAVES_ASLEEP) != FG_WORD_LEAVES_ASLEEP || !keeps_busy(l, t) ||
	    t->busy_releases == 0 || t->round_is_timed)
		return false;
	fg_set_cs(t, 0);
	tell_standby(l, t);
	if (!fg_cas_release(&l->word, &w, w & ~FG_WORD_ID))
		return false;
	t->busy_releases++;
	fg_count(t, FG_STAT_WAKEUPS_SAVED, 1);
	force_slow_path(t); /* it finds flags again and need not try the fast path */
	fg_set_pending(t, 0);
	return true;
}

/* How many locks this thread holds, of which `l` is the latest; 0: it is not, or is not known. */
static inline uint32_t held_up_to(const struct fg_lock *l, const struct fg_self *t)
{
	if (t->unordered)
		return 0;
	if (t->only == (address(l) | FG_ONLY_SLOWLY))
		return 1;
	if (t->only != (address(l) | FG_ONLY_SEVERAL) &&
	    t->only != (address(l) | FG_ONLY_SEVERAL | FG_ONLY_SLOWLY))
		return 0;
	return t->held;
}

static inline bool release_unwaited(struct fg_lock *l, const struct fg_self *t)
{
	uint32_t mine = t->id;

	return __libc_single_threaded ? _fg_release_alone(l, mine) :
					fg_cas_release(&l->word, &mine, 0);
}

/* Of one with FG_ONLY_SEVERAL: two, and nothing to look after when one of them is released. */
static inline bool has_two_alone(const struct fg_self *t)
{
	return t->held == 2 && !t->unordered && !t->keeps_busy && !t->round_is_timed;
}

/*
 * Lock coupling (Bayer, Schkolnick, Acta Informatica 1977), also called hand over hand: the first
 * of two goes, and the second is what this thread has then.  It is critical all the time by that
 * one, so the count need not be right before the release.  `pending` is not what it was if a signal
 * handler has forgotten which lock is the latest.
 */
static inline bool unlock_first_of_two(struct fg_lock *l, struct fg_self *t)
{
	uint64_t latest = t->only ^ FG_ONLY_SEVERAL;

	if (t->first != address(l) || !latest || latest & FG_ONLY_BITS || !has_two_alone(t) ||
	    !release_unwaited(l, t))
		return false;
	t->only = latest;
	fg_set_pending(t, latest);
	fg_set_cs(t, 0);
	if (fg_unlikely(t->unordered)) /* as in _fg_unlock_slow() */
		publish(t, 1, latest);
	return true;
}

/*
 * The common case again: the latest of several locks, or one that was taken the
 * slow way, and nobody sleeps.  Whoever has released a lock lately that others sleep for looks at
 * the word first: a CAS that fails would pull the line from a spinning waiter for nothing.
 * Otherwise no look: it would be a second journey of the line.
 */
static inline bool unlock_nested(struct fg_lock *l, struct fg_self *t)
{
	uint32_t held = held_up_to(l, t);
	uint64_t prev;

	if (!held || (t->keeps_busy && fg_load_relaxed(&l->word) != t->id))
		return false;
	prev = only_before(l, t, held); /* cs has not counted this lock yet */

	if (!release_unwaited(l, t))
		return false;
	publish(t, held - 1, prev);
	round_releases(l, t);
	return true;
}

/*
 * The word says that this thread has it, and the thread does not say so, or holds too many to know:
 * it has given it away, perhaps.
 */
static bool is_forgotten(const struct fg_lock *l, const struct fg_self *t)
{
	return fg_has_slot(t) && !says_it_holds(t, address(l));
}

/*
 * A lock that this thread does not hold: what glibc does with normal mutexes, which programs use.
 */
static inline uint32_t released_for(struct fg_lock *l, struct fg_self *t, uint32_t *w)
{
	uint32_t owner = *w & FG_WORD_ID, given_to;

	if (!owner || (owner == t->id && !is_forgotten(l, t)))
		return 0;
	given_to = _fg_offer_take_back(l, t);
	*w = fg_load_relaxed(&l->word);
	owner = given_to ? given_to : *w & FG_WORD_ID;
	if (!owner || (owner == t->id && !given_to))
		return 0;
	if (fg_id_has_slot(owner) && fg_thread_was(fg_id_index(owner)))
		fg_thread_released_for(owner);
	return owner;
}

uint32_t _fg_lock_released_for(struct fg_lock *l)
{
	uint32_t w = fg_load_relaxed(&l->word);

	return released_for(l, fg_self(), &w);
}

void _fg_unlock_for(struct fg_lock *l, uint32_t owner)
{
	struct fg_self *t = fg_self();

	if (fg_id_has_slot(owner) && fg_thread_was(fg_id_index(owner))) {
		const struct fg_thread *o = fg_thread_of(fg_id_index(owner));

		if (fg_load_relaxed(&o->notifies_of) == part_of_address(address(l)))
			tell_free(fg_load_relaxed(&o->notifies)); /* 0: nobody has that index */
	}
	if (release(l, t, fg_load_relaxed(&l->word), false))
		wake_one(l, t, false);
}

/* 0, as the other long ways: _fg_unlock_slow() ends with them. */
static __attribute__((noinline)) int release_and_wake(struct fg_lock *l, struct fg_self *t,
						      bool given)
{
	uint32_t w = fg_load_relaxed(&l->word), owner = released_for(l, t, &w), held;
	bool over = false;
	uint64_t prev;

	if (owner) {
		_fg_unlock_for(l, owner);
		return 0;
	}
	if (!(w & FG_WORD_ID))
		return 0;
	/* Not 0: the count is of 16 bits, and of what others say that they have released. */
	held = has_several(t) && t->held ? t->held : 1;
	if (held == 1 && pending_of(t) == address(l) && release_busy(l, t, w)) {
		fg_slice_end(t);
		return 0;
	}
	prev = only_without(l, t, held);
	/*
	 * cs stops counting this lock before the release, pending is exact until
	 * it.  With sleepers the thread stays critical until the wake-up is out:
	 * the lock is free then and nobody is coming.
	 */
	fg_set_pending(t, address(l));
	fg_set_cs(t, w & FG_WORD_WAITERS ? held : held - 1);
	if (release(l, t, w, given)) {
		wake_one(l, t, false);
		over = turn_is_over(l, t);
	}
	publish(t, held - 1, prev);
	round_releases(l, t);
	if (held == 1) {
		if (over)
			force_slow_path(t);
		fg_slice_end(t);
	}
	return 0;
}

/*
 * Where others sleep, or it is not the latest lock, release() has some things to do before it tells
 * the standby.
 */
static __attribute__((noinline)) int notify_and_unlock(struct fg_lock *l, struct fg_self *t,
						       struct fg_thread *me, bool given)
{
	uint32_t standby = me->notifies;

	if (!me->sleepers && pending_of(t) == address(l))
		tell_free(standby);
	if (me->sleepers || !unlock_nested(l, t))
		release_and_wake(l, t, given);
	/* Not before: the line is one that others read, and the release would wait for it. */
	me->notifies = 0;
	return 0;
}

/*
 * The usual release of one that is back at once, where others sleep: release_busy(), or one of them
 * has been woken and is on its way.  That takes a time slice if all CPUs are busy, in which each
 * release finds a flag and has nothing to do about it.
 */
static inline bool unlock_again(struct fg_lock *l, struct fg_self *t)
{
	uint32_t w;

	if (t->only != (address(l) | FG_ONLY_SLOWLY) || !rounds_are_short(t) || t->round_is_timed ||
	    t->unordered || has_standby(t, address(l)) || was_given(t, address(l)) ||
	    fg_slice_may_ask())
		return false;
	w = fg_load_relaxed(&l->word);
	if ((w & FG_WORD_ID) != t->id)
		return false;
	if (w & FG_WORD_WAITERS)
		return release_busy(l, t, w);
	if (w == t->id || !fg_cas_release(&l->word, &w, w & ~FG_WORD_ID))
		return false;
	force_slow_path(t);
	fg_set_pending(t, 0);
	return true;
}

/*
 * To the next one, if it is the latest lock, and no sleeper is to be looked after.  `given`: it was
 * given to this thread; if it is not given on, the word says whose it is from now on.
 */
static __attribute__((noinline)) bool unlock_by_offer(struct fg_lock *l, struct fg_self *t,
						      bool given)
{
	uint32_t held = held_up_to(l, t);
	uint64_t prev = held ? only_before(l, t, held) : 0;

	round_hands_over(l, t);
	if (held && _fg_offer_give(l, t)) {
		publish(t, held - 1, prev);
		round_releases(l, t);
		return true;
	}
	if (given)
		_fg_offer_end(l, t);
	return false;
}

static __attribute__((noinline)) int unlock_long_way(struct fg_lock *l)
{
	struct fg_self *t = fg_self();
	bool given;

	if (unlock_again(l, t))
		return 0;
	given = was_given(t, address(l));
	if ((given || has_standby(t, address(l))) && unlock_by_offer(l, t, given))
		return 0;
	if (has_standby(t, address(l)))
		return notify_and_unlock(l, t, fg_thread_mine(t), given);
	return unlock_nested(l, t) ? 0 : release_and_wake(l, t, given);
}

static __attribute__((noinline)) int unlock_latest(struct fg_lock *l, struct fg_self *t)
{
	return unlock_nested(l, t) ? 0 : release_and_wake(l, t, false);
}

/*
 * First the latest of several.  Without FG_ONLY_SLOWLY it has no standby, and was not given to this
 * thread (acquired()).
 */
__attribute__((noinline)) int _fg_unlock_slow(struct fg_lock *l)
{
	struct fg_self *t = &fg_self_tls;
	uint64_t first = t->first;

	if (fg_unlikely(t->only != (address(l) | FG_ONLY_SEVERAL)))
		return unlock_first_of_two(l, t) ? 0 : unlock_long_way(l);
	/* The first as the fast path leaves it: a release of the second has but to publish that. */
	if (fg_unlikely(!first || first & FG_ONLY_BITS || !has_two_alone(t)))
		return unlock_latest(l, t);
	if (fg_unlikely(!release_unwaited(l, t)))
		return release_and_wake(l, t, false);
	t->only = first;
	fg_set_pending(t, first);
	fg_set_cs(t, 0);
	if (fg_unlikely(t->unordered)) /* a signal handler in between has asked for it */
		publish(t, 1, first);
	return 0;
}
