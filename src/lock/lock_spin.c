/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the FlexGuard lock (legend: lock.h): spinning for it, in a queue whose head
 * asks for the lock when it has been overtaken for long enough.
 *
 * Constants were measured on a 2-CPU VM with Linux 6.18, those that say so were not varied.
 * "Hand-off": docs/design/lock.md.
 */
#include "arch/arch.h"
#include "lock/attempt.h"
#include "lock/queue.h"
#include "lock/rounds.h"

/*
 * How long a head lets others take the lock past it before it asks for it.  The time of some dozen
 * short sections, in which the lock stays in one cache ("Hand-off").
 */
#define HANDOFF_NS 5000u

/*
 * The head reads the clock, and looks behind itself, at one look in so many: 27 ns, by which each
 * look finds a free lock later (1 us sections, 2 threads: 3 % less).
 */
#define HEAD_CLOCK_EVERY 16u

/* It asks after so many times as long if it has not seen anybody overtake it.  Not varied. */
#define HANDOFF_UNSEEN 8u

/*
 * After a compare-and-swap that came too late the head leaves the line alone for so long, then for
 * twice as long each time.  Not varied.
 */
#define BACKOFF_NS 500u

/*
 * Waiters behind the head look at the word once in so many questions, of some 20 to 60 ns each: the
 * head may be kept off its CPU with the lock promised to it, or the owner off its own.  Without a
 * monitor the owner is all they have to go by.  Not varied.
 */
#define LOOK_EVERY	    4096u
#define LOOK_EVERY_FALLBACK 64u

static bool timed_out(const struct attempt *a)
{
	return fg_unlikely(a->deadline != NULL) && a->wait.asked % FG_CLOCK_EVERY == 1 &&
	       fg_deadline_passed(a->deadline);
}

/* Not for much longer where the clock stands still for a tick.  Not varied. */
#define MAX_PAUSES 256u

static void pause_until(uint64_t until)
{
	for (uint32_t n = 0; n < MAX_PAUSES && fg_now_ns() < until; n++)
		fg_pause();
}

/*
 * The only waiter that looks at the word all the time.  An owner that is back for the lock at
 * once has it in its cache: it wins each race, and each look of others costs it the line.  So the
 * head looks rarely at first, and after HANDOFF_NS asks for the lock (HANDOFF): the next release
 * leaves it to the head, and those who come do not take it.  Linux's mutex does so for a waiter
 * that has been woken (MUTEX_FLAG_HANDOFF, kernel/locking/mutex.c).
 */
static enum outcome spin_as_head(struct fg_lock *l, struct fg_self *t, struct attempt *a,
				 uint32_t n, struct fg_successor *behind)
{
	uint64_t now = fg_now_ns(), due = now + HANDOFF_NS, backoff = BACKOFF_NS;
	bool overtaken = rounds_are_short(t), asked = false;
	enum outcome o;

	if (overtaken)
		pause_until(due);
	for (uint32_t looks = 0;; looks++) {
		uint32_t word = fg_load_relaxed(&l->word);

		if (!(word & FG_WORD_ID)) {
			if (take_over(l, t, a))
				return ACQUIRED;
			overtaken = true;
			now = fg_now_ns();
			pause_until(now + backoff < due ? now + backoff : due);
			backoff *= 2;
			looks = 0;
			word = fg_load_relaxed(&l->word);
		}
		/*
		 * No longer designated: SPINNER and DESIGNATED are two threads, since one may be
		 * off its CPU.
		 */
		if ((word & FG_WORD_ID) && (word & FG_WORD_WAKEUP_CLEARS) == FG_WORD_WAITERS &&
		    fg_cas_relaxed(&l->word, &word, (word & ~a->obligation) | FG_WORD_SPINNER))
			a->obligation = FG_WORD_SPINNER;
		if (looks % HEAD_CLOCK_EVERY == 0) {
			now = fg_now_ns();
			_fg_queue_look_behind(n, behind);
			if (now >= due && !(word & FG_WORD_HANDOFF) &&
			    (overtaken || now - due >= HANDOFF_UNSEEN * HANDOFF_NS)) {
				fg_or_relaxed(&l->word, FG_WORD_HANDOFF);
				asked = true;
			}
		}
		a->wait.owner = word & FG_WORD_ID;
		o = UNDECIDED;
		if (fg_decide(&a->wait) == FG_BLOCK)
			break;
		o = TIMED_OUT;
		if (timed_out(a))
			break;
		fg_pause();
	}
	if (asked)
		fg_and_relaxed(&l->word, ~FG_WORD_HANDOFF);
	return o;
}

/*
 * Often where the owner is all there is to go by, or when it has been seen off its CPU: another may
 * have the lock since.
 */
static bool time_to_look(const struct fg_wait *w)
{
	if (w->asked % LOOK_EVERY_FALLBACK)
		return false;
	return w->asked % LOOK_EVERY == 0 || w->off_ns || !fg_policy_has_monitor() ||
	       !fg_is_watched(w->owner);
}

/*
 * Behind somebody: spins on the node, and leaves the word to the owner and the head but for a rare
 * look.  UNDECIDED: the head, or no longer in the queue.
 */
static enum outcome spin_in_queue(struct fg_lock *l, struct fg_self *t, struct attempt *a,
				  uint32_t n, bool *head)
{
	bool was_free = false;

	for (;;) {
		enum fg_queue_poll poll = _fg_queue_poll(t, n);
		bool late = false;

		if (poll != FG_QUEUE_WAIT) {
			*head = poll == FG_QUEUE_HEAD;
			return UNDECIDED;
		}
		if (time_to_look(&a->wait)) {
			a->wait.owner = fg_load_relaxed(&l->word) & FG_WORD_ID;
			/* Kept free for a head that does not come, or a moment before it does. */
			if (!a->wait.owner && (was_free || fg_policy_has_monitor()) &&
			    take_over(l, t, a)) {
				*head = !_fg_queue_leave(t, n);
				return ACQUIRED;
			}
			was_free = !a->wait.owner;
		}
		if (fg_decide(&a->wait) == FG_BLOCK || (late = timed_out(a))) {
			*head = !_fg_queue_leave(t, n); /* just granted: decide again as the head */
			return late && !*head ? TIMED_OUT : UNDECIDED;
		}
		fg_pause();
	}
}

enum outcome _fg_lock_spin(struct fg_lock *l, struct fg_self *t, struct attempt *a)
{
	struct fg_successor behind = {0, 0};
	enum outcome o = UNDECIDED;
	bool head;
	uint32_t n = _fg_queue_join(l, t, &head), asked = a->wait.asked;

	if (!n)
		return UNDECIDED;
	if (!head)
		o = spin_in_queue(l, t, a, n, &head);
	if (head) {
		if (o != ACQUIRED)
			o = spin_as_head(l, t, a, n, &behind);
		_fg_queue_hand_over(l, t, n, &behind);
	}
	fg_count(t, FG_STAT_SPINS, a->wait.asked - asked);
	return o;
}
