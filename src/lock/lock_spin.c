/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h): spinning for it, in a queue whose head
 * asks for the lock when it has been overtaken for long enough.
 *
 * Constants were measured on a 2-CPU VM with Linux 6.18, those that say so were not varied.
 * "Hand-off": docs/design/many-cpus.md.
 */
#include "arch/arch.h"
#include "lock/attempt.h"
#include "lock/offer.h"
#include "lock/queue.h"
#include "lock/rounds.h"

/*
 * How long a head lets others take the lock past it before it asks for it.  The time of some dozen
 * short sections, in which the lock stays in one cache ("Hand-off").
 */
#define HANDOFF_NS 5000u

/*
 * The head reads the clock, and looks at the node behind its own, at one look in so many: 27 ns, by
 * which each look finds a free lock later (1 us sections, 2 threads: 3 % less).
 */
#define HEAD_CLOCK_EVERY 16u

/* It asks after so many times as long if it has not seen anybody overtake it.  Not varied. */
#define HANDOFF_UNSEEN 8u

/*
 * Looks of one that comes and finds nobody in the queue: some 1.2 us, in which most sections of a
 * us end.  With 16, two threads with 1 us inside and 0.5 us outside have 3 % less.  With a deadline
 * it mostly is at the gate of a reader-writer lock, where many may come at once: fewer.
 */
#define LOOKS_ALONE	  32u
#define LOOKS_ALONE_TIMED 16u

/*
 * After so many others have had the lock meanwhile it joins the queue.  Without that those that
 * look keep the line from each other and from the owner; after 1 or 2, what is quicker than a queue
 * while only two or three look would end (simulated: docs/design/many-cpus.md, "The standby").
 */
#define OVERTAKEN_ALONE 4u

/*
 * Waiters behind the head look at the word once in so many questions, of some 20 to 60 ns each: the
 * head may be kept off its CPU with the lock promised to it, or the owner off its own.  Without a
 * monitor the owner is all they have to go by.  Not varied.
 */
#define LOOK_EVERY	    16384u
#define LOOK_EVERY_FALLBACK 64u
#define LOOKS_BEHIND	    2u

/*
 * A head that waits to be told looks at the word once in so many questions all the same; sooner if
 * a critical thread is off its CPU, which may be the one that has to tell.  Not varied.
 */
#define UNTOLD_EVERY	 1024u
#define UNTOLD_EVERY_OFF 64u

/* Given what it has offered to take. */
static bool is_given(const struct fg_lock *l, const struct fg_self *t)
{
	return fg_load_acquire(&fg_thread_mine(t)->offer) == (address(l) | FG_OFFER_GIVEN);
}

static bool timed_out(const struct attempt *a)
{
	return fg_unlikely(a->deadline != NULL) && a->wait.asked % FG_CLOCK_EVERY == 1 &&
	       fg_deadline_passed(a->deadline);
}

/* More than HANDOFF_NS: where the clock stands still.  Not varied. */
#define MAX_PAUSES 256u

/* The shortest first part is HANDOFF_NS >> 3.  With 4 or 5: no better (simulated). */
#define IN_VAIN_MOST 3u

/*
 * A head, or the standby: one that has handed the role of the head over while it waited, and comes
 * next all the same.  With a queue behind it the standby is told by the owner when that releases
 * the lock (enum fg_notice), and the head by the standby when that has the lock.  Until then
 * neither looks at the word: each look would cost the owner, and those who come, the line.  The
 * chain
 *
 *	owner	tells the standby FREE when it releases the lock
 *	standby	has granted the head's role with COMES, tells STANDBY when it has the lock
 *	head	puts the queue in order meanwhile (_fg_queue_bring_near); at STANDBY it hands its
 *		role over, and is the standby; one that nobody has told anything does so, too
 *
 * is of hints: whoever is not told looks at the word all the same, once in UNTOLD_EVERY questions.
 * Waiting to be told, and one thread that waits beside the queue: Dice, "Malthusian Locks", EuroSys
 * 2017 (LOITER's standby thread).
 */
struct head {
	uint32_t n; /* its node; 0: the standby */
	struct fg_successor behind;
	bool asked;	/* for the lock: HANDOFF */
	bool offers;	/* to be given it */
	bool waits;	/* to be told */
	bool overtaken; /* by others, as far as it knows */
	uint64_t now, due;
};

/*
 * One promise at a time: it may owe one to those behind another lock.  Not if it has no other: that
 * one was released for it, or forgotten.
 */
static bool owes_another(const struct fg_lock *l, const struct fg_self *t)
{
	return t->only != address(l) && fg_thread_mine(t)->notifies && !has_standby(t, address(l));
}

/*
 * While others wait to be told they do not look who the owner is.  So only a thread promises whose
 * CPU the monitor watches: of another they would spin until their cap.  (One that promises while it
 * waits looks for them who the owner is.)
 */
static bool may_promise(const struct fg_lock *l, const struct fg_self *t)
{
	return fg_policy_has_monitor() && fg_is_watched(t->id) && !owes_another(l, t);
}

/* To the one that this thread has granted the head's role to. */
static void tell(const struct fg_lock *l, struct fg_self *t, enum fg_notice notice)
{
	struct fg_thread *me = fg_thread_mine(t);

	if (!has_standby(t, address(l)))
		return;
	fg_store_relaxed(&fg_thread_of(me->notifies)->notice, (uint8_t)notice);
	if (notice == FG_NOTICE_FREE) /* that one looks for itself now, and is owed nothing */
		me->notifies = 0;
}

static void hand_over(struct fg_lock *l, struct fg_self *t, struct head *h)
{
	if (h->due) /* it has waited as the head */
		h->behind.waited_us = (uint32_t)((h->now - (h->due - HANDOFF_NS)) / 1000);
	_fg_queue_hand_over(l, t, h->n, &h->behind);
}

/* Now, while it waits, and not with the lock in hand. */
static void become_standby(struct fg_lock *l, struct fg_self *t, struct head *h)
{
	h->behind.notice = FG_NOTICE_COMES;
	hand_over(l, t, h);
	h->n = 0;
	fg_set_role(t, FG_ROLE_HEAD);
}

/*
 * A head that looks at the word itself, as nobody has promised to tell it, becomes the standby as
 * soon as somebody is behind it, and looks on: with few threads the queue is mostly no longer than
 * that.  Not one whose CPU others of the process want.
 */
static bool is_followed(const struct fg_lock *l, struct fg_self *t, const struct attempt *a,
			struct head *h)
{
	return h->n && _fg_queue_has_next(h->n, &h->behind) && !a->obligation && !fg_displaces(t) &&
	       !rounds_are_short(t) && may_promise(l, t);
}

/* Just told that it becomes free: without the look that would cost a journey of the line more. */
static bool take_told(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	uint32_t word = 0;

	if (a->obligation)
		word = fg_load_relaxed(&l->word);
	else if (_fg_take_free_word(l, t, &word))
		return true;
	if (take_over_seen(l, t, a, word)) /* others sleep */
		return true;
	fg_store_relaxed(&fg_thread_mine(t)->notice, FG_NOTICE_NONE);
	return false;
}

/* A look at the word.  True with the lock. */
static bool look(struct fg_lock *l, struct fg_self *t, struct attempt *a, struct head *h)
{
	uint32_t word = fg_load_relaxed(&l->word);

	if (!(word & FG_WORD_ID)) {
		if (take_over_seen(l, t, a, word))
			return true;
		h->overtaken = true;
		h->now = fg_now_ns();
		word = fg_load_relaxed(&l->word);
	}
	/*
	 * No longer designated: SPINNER and DESIGNATED are two threads, since one may be off its
	 * CPU.  An owner that tells the standby knows without SPINNER that there is one.
	 */
	if (!h->waits && (word & FG_WORD_ID) && (word & FG_WORD_WAKEUP_CLEARS) == FG_WORD_WAITERS &&
	    fg_cas_relaxed(&l->word, &word, (word & ~a->obligation) | FG_WORD_SPINNER))
		a->obligation = FG_WORD_SPINNER;
	if (h->now >= h->due && !(word & FG_WORD_HANDOFF) &&
	    (h->overtaken || h->now - h->due >= HANDOFF_UNSEEN * HANDOFF_NS)) {
		fg_or_relaxed(&l->word, FG_WORD_HANDOFF);
		h->asked = true;
	}
	a->wait.owner = word & FG_WORD_ID;
	return false;
}

/* One that is told, or waits to be told.  True with the lock. */
static bool look_as_told(struct fg_lock *l, struct fg_self *t, struct attempt *a, struct head *h,
			 enum fg_notice notice, uint32_t looks)
{
	uint32_t every;

	if (notice == FG_NOTICE_FREE)
		return take_told(l, t, a) || look(l, t, a, h);
	if (h->n) {
		if (notice == FG_NOTICE_STANDBY && _fg_queue_has_next(h->n, &h->behind) &&
		    !owes_another(l, t))
			become_standby(l, t, h);
		else
			_fg_queue_bring_near(t, h->n, &h->behind);
	}
	every = a->wait.off_ns ? UNTOLD_EVERY_OFF : UNTOLD_EVERY;
	if (looks % every == every - 1)
		return look(l, t, a, h);
	a->wait.owner = 0;
	return false;
}

/*
 * A head whose own rounds are short pauses for HANDOFF_NS; but those of the others may be over: a
 * program takes its lock some times between two barriers, or after a broadcast.  So where such
 * pauses have been in vain lately, and at one in 16 others, it looks in the middle whether they
 * are, and the sooner the more often they were.  Not at each: it takes the line from the owner.
 */
static bool pauses_in_vain(const struct fg_lock *l, struct fg_self *t, const struct head *h)
{
	struct fg_thread *me = fg_thread_mine(t);

	if (!me->in_vain && t->times_head != 0)
		return false;
	pause_until(h->now + (HANDOFF_NS >> (me->in_vain ? me->in_vain : 1)), MAX_PAUSES);
	if (_fg_rounds_are_over(l, t)) {
		me->in_vain += me->in_vain < IN_VAIN_MOST;
		return true;
	}
	me->in_vain -= me->in_vain > 0;
	return false;
}

/*
 * The only waiter that looks at the word all the time.  An owner that is back for the lock at
 * once has it in its cache: it wins each race, and each look of others costs it the line.  So the
 * head looks rarely at first, and after HANDOFF_NS asks for the lock (HANDOFF): the next release
 * leaves it to the head, and those who come do not take it.  Linux's mutex does so for a waiter
 * that has been woken (MUTEX_FLAG_HANDOFF, kernel/locking/mutex.c).
 */
static enum outcome spin_as_head(struct fg_lock *l, struct fg_self *t, struct attempt *a,
				 struct head *h)
{
	const uint8_t *told = &fg_thread_mine(t)->notice;
	enum outcome o = ACQUIRED;

	/* Asked once: a signal handler's locks may change the answer. */
	h->overtaken = rounds_are_short(t);
	h->offers = a->may_offer && !a->obligation && !h->overtaken && _fg_offer_make(l, t);
	h->now = fg_now_ns();
	h->due = h->now + HANDOFF_NS;
	if (h->overtaken) {
		if (pauses_in_vain(l, t, h) && look(l, t, a, h))
			return ACQUIRED;
		pause_until(h->due, MAX_PAUSES);
	}
	for (uint32_t looks = 0;; looks++) {
		enum fg_notice notice = fg_load_relaxed(told);

		if (looks % HEAD_CLOCK_EVERY == 0) {
			h->now = fg_now_ns();
			if (h->n) {
				_fg_queue_look_behind(h->n, &h->behind);
				_fg_queue_bring_near(t, h->n, &h->behind);
			}
		}
		h->waits = notice != FG_NOTICE_NONE;
		if (h->offers && is_given(l, t))
			return GIVEN;
		if (fg_unlikely(h->waits) ? look_as_told(l, t, a, h, notice, looks) :
					    look(l, t, a, h))
			break;
		o = UNDECIDED;
		if (fg_decide(&a->wait) == FG_BLOCK)
			break;
		o = TIMED_OUT;
		if (timed_out(a))
			break;
		o = ACQUIRED;
		if (!h->waits && is_followed(l, t, a, h))
			become_standby(l, t, h);
		else
			fg_pause();
	}
	/*
	 * If it has taken it, nobody can give it; but the offer may be another one by now, or
	 * another lock that a signal handler was given.
	 */
	if (h->offers && !_fg_offer_withdraw(l, t))
		return GIVEN;
	if (o != ACQUIRED && h->asked)
		fg_and_relaxed(&l->word, ~FG_WORD_HANDOFF);
	return o;
}

/*
 * What a waiter behind the head knows of the owner.  With a monitor it looks at the word rarely,
 * and how many look must not grow with the queue: only the one whose predecessor waits no more,
 * which is the next; and each once, or twice, when the owner that it knows has been seen off its
 * CPU and may have the lock still.  After that, or if it has not, it judges no owner.
 */
struct view {
	uint32_t before; /* the node that it joined behind */
	uint32_t looks;	 /* because of an owner off its CPU */
	uint32_t off;	 /* the owner that was seen at the last of them */
};

/* By what a thread that is off its CPU has published, so that the lock's line stays where it is. */
static bool may_hold(uint32_t owner, const struct fg_lock *l)
{
	const struct fg_slot *slot = fg_slot_look(fg_id_index(owner));

	if (fg_load_relaxed(&slot->owner_id) != owner || fg_load_relaxed(&slot->cs))
		return true;
	return fg_load_relaxed(&slot->pending) == address(l) &&
	       fg_load_relaxed(&slot->role) == FG_ROLE_NONE;
}

static bool time_to_look(const struct fg_lock *l, struct fg_wait *w, struct view *v)
{
	/*
	 * Each question about one that is off its CPU reads the clock.  Where that is a system call
	 * or a device, so many of them outlast the grace: before it ends, not after.
	 */
	bool doubted = w->off_ns && w->grace_ends && w->owner && w->owner != v->off &&
		       v->looks < LOOKS_BEHIND;

	if (!doubted && w->asked % LOOK_EVERY_FALLBACK)
		return false;
	if (!fg_policy_has_monitor() || !fg_is_watched(w->owner))
		return true;
	if (!w->off_ns && w->asked % LOOK_EVERY)
		return false;
	if (!_fg_queue_still_waits(v->before))
		return true;
	/* It may be another critical thread that is off. */
	if (!w->off_ns || w->owner == v->off || !fg_is_owner_off(w->owner))
		return false;
	if (may_hold(w->owner, l) && v->looks++ < LOOKS_BEHIND)
		return true;
	w->owner = 0;
	return false;
}

/* The monitor does not look at the word of one that is WAITING (struct fg_slot). */
static bool take_in_queue(struct fg_lock *l, struct fg_self *t, struct attempt *a, uint32_t word)
{
	bool taken;

	fg_set_role(t, FG_ROLE_LINKING);
	taken = take_over_seen(l, t, a, word);
	if (!taken)
		fg_set_role(t, FG_ROLE_WAITING);
	return taken;
}

/*
 * Behind somebody: spins on the node, and leaves the word to the owner and the head but for a rare
 * look.  UNDECIDED: the head, or no longer in the queue.
 */
static enum outcome spin_in_queue(struct fg_lock *l, struct fg_self *t, struct attempt *a,
				  uint32_t n, uint32_t before, bool *head)
{
	struct view view = {.before = before};
	bool was_free = false;

	for (;;) {
		enum fg_queue_poll poll = _fg_queue_poll(t, n);
		bool late = false;

		if (poll == FG_QUEUE_GIVEN)
			return GIVEN;
		if (poll != FG_QUEUE_WAIT) {
			*head = poll == FG_QUEUE_HEAD;
			return UNDECIDED;
		}
		if (time_to_look(l, &a->wait, &view)) {
			uint32_t word = fg_load_relaxed(&l->word);

			a->wait.owner = word & FG_WORD_ID;
			if (a->wait.off_ns)
				view.off = a->wait.owner;
			/* Kept free for a head that does not come, or a moment before it does. */
			if (!a->wait.owner && (was_free || fg_policy_has_monitor()) &&
			    take_in_queue(l, t, a, word)) {
				*head = _fg_queue_leave(t, n) != FG_QUEUE_LOST;
				return ACQUIRED;
			}
			was_free = !a->wait.owner;
		}
		if (fg_decide(&a->wait) == FG_BLOCK || (late = timed_out(a))) {
			poll = _fg_queue_leave(t, n);
			if (poll == FG_QUEUE_GIVEN)
				return GIVEN;
			*head = poll == FG_QUEUE_HEAD; /* just granted: decide again as the head */
			return late && !*head ? TIMED_OUT : UNDECIDED;
		}
		fg_pause();
	}
}

/* Of one whose round will be timed, if it gets the lock as the head. */
static void time_journey(const struct fg_self *t, uint32_t owner)
{
	if (t->times_head == 0 && fg_has_slot(t) && fg_id_has_slot(owner))
		_fg_time_journey(t, owner);
}

/*
 * Before any question, which begins by reading the clock, and before the queue, which is left with
 * the lock in hand.  As if it came that much later.  It looks by attempts: to read the word first
 * is one more journey of the line when the lock is free.  Not at a gate, whose line others need.
 * The tail, in the same line, is read right after the word, while the line is here.
 */
bool _fg_lock_look_alone(struct fg_lock *l, struct fg_self *t, uint32_t *word,
			 const struct fg_deadline *deadline)
{
	bool attempts = !deadline;
	uint32_t most = attempts ? LOOKS_ALONE : LOOKS_ALONE_TIMED, overtaken = 0;
	uint32_t owner = *word & FG_WORD_ID, now;

	if (!fg_policy_spins())
		return false;
	if (!deadline && !fg_load_relaxed(&l->tail))
		time_journey(t, *word & FG_WORD_ID);
	if (rounds_are_short(t))
		return false;
	for (uint32_t looks = 0; looks < most && !fg_load_relaxed(&l->tail); looks++) {
		fg_pause();
		*word = attempts ? 0 : fg_load_relaxed(&l->word);
		if ((attempts && _fg_take_free_word(l, t, word)) || barge(l, t, word))
			return true;
		now = *word & FG_WORD_ID; /* 0: promised */
		if (now && owner && now != owner && ++overtaken == OVERTAKEN_ALONE)
			return false;
		owner = now ? now : owner;
	}
	return false;
}

/* Its looks on the way to sleep would be those of a head that has not been overtaken yet. */
bool _fg_lock_keep_away(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	if (!rounds_are_short(t) || !fg_policy_spins() || a->obligation || a->slept ||
	    fg_is_owner_off(fg_load_relaxed(&l->word) & FG_WORD_ID))
		return false;
	pause_until(fg_now_ns() + HANDOFF_NS, MAX_PAUSES);
	return take_over(l, t, a);
}

/*
 * It is given the lock, perhaps with the role of the head in its node h->n, which it keeps.  At one
 * in LOOKS it settles the word: so it learns whether others sleep, and others who the owner is.
 * Beside another one that it was given, or has offered to take before a signal handler came, it
 * takes it as if by the word: there is room for one.  And so it does where it looks, and the next
 * one is far: of those that are given both nobody waits as the head, and a bad order would stay.
 */
static enum outcome accept(struct fg_lock *l, struct fg_self *t, struct attempt *a, struct head *h)
{
	uint32_t drop = a->obligation | (h->asked ? FG_WORD_HANDOFF : 0);
	struct fg_thread *me = fg_thread_mine(t);
	bool by_word = !h->offers && has_several(t) && me->offer;

	if (drop)
		fg_and_relaxed(&l->word, ~drop);
	a->obligation = 0;
	a->taken = 0;
	if (by_word || looks_at_word(t, me->others_sleep)) {
		a->taken = _fg_offer_settle(l, t);
		me->others_sleep = (a->taken & FG_WORD_WAITERS) != 0;
		if (!h->offers && _fg_queue_next_is_far(t, h->n)) {
			_fg_queue_look_behind(h->n, &h->behind);
			by_word = true;
		}
	}
	if (by_word)
		return ACQUIRED;
	if (h->n)
		_fg_offer_keep(l, t, h->n);
	t->only |= FG_ONLY_SLOWLY;
	fg_fence_local();
	/* Before the role goes, for the monitor.  No look what it says: that one has its line. */
	fg_set_cs(t, has_several(t) ? t->held : 1);
	fg_set_role(t, FG_ROLE_NONE);
	return GIVEN;
}

enum outcome _fg_lock_spin(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	struct head h = {0};
	enum outcome o = UNDECIDED;
	bool head;
	uint32_t asked = a->wait.asked, before;

	h.n = _fg_queue_join(l, t, &before);
	if (!h.n)
		return UNDECIDED;
	head = !before;
	/* Not on the way into the queue: others would take the lock's line meanwhile. */
	if (!head) {
		if (!a->deadline)
			time_journey(t, a->wait.owner);
		a->wait.follows = true;
		o = spin_in_queue(l, t, a, h.n, before, &head);
	}
	a->wait.follows = false;
	if (head && o != ACQUIRED)
		o = spin_as_head(l, t, a, &h);
	if (o == GIVEN) {
		head = true;
		o = accept(l, t, a, &h);
	}
	if (o == GIVEN) {
		o = ACQUIRED;
	} else if (head) {
		if (h.n) {
			/*
			 * With somebody behind that one, too, it need not look at the word.  Not
			 * where rounds are short: one that comes past it then is welcome.
			 */
			if (o == ACQUIRED && h.behind.more && !rounds_are_short(t) &&
			    may_promise(l, t))
				h.behind.notice = FG_NOTICE_STANDBY;
			hand_over(l, t, &h);
		} else {
			fg_set_role(t, FG_ROLE_NONE);
			tell(l, t,
			     o == ACQUIRED && may_promise(l, t) ? FG_NOTICE_STANDBY :
								  FG_NOTICE_FREE);
		}
	}
	fg_count(t, FG_STAT_SPINS, a->wait.asked - asked);
	return o;
}
