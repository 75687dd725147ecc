/* SPDX-License-Identifier: MIT */
#include "lock/offer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "lock/lock_paths.h"
#include "lock/queue.h"
#include "lock/rounds.h"
#include "runtime/decide.h"
#include "sys/filter.h"

/*
 * Who releases a lock for a thread that is passing on the head's role of it waits so many
 * SHORT_SLEEP_NS at most: a signal handler on top of that thread may want what this one holds.
 */
#define PATIENCE 1000u

/*
 * Locks for which an offer has ever been made, by their addresses: of all others the word says who
 * the owner is, and nobody need be asked.  That is a look at each thread, 2 us of a thousand.
 */
#define OFFERED_BITS 65536u
static uint32_t offered[OFFERED_BITS / 32];

static uint32_t *offered_of(const struct fg_lock *l, uint32_t *bit)
{
	uint64_t h = address(l) / sizeof(uint64_t) * 0x9e3779b97f4a7c15ull >> 48;

	*bit = 1u << h % 32;
	return &offered[h / 32];
}

static bool was_offered(const struct fg_lock *l)
{
	uint32_t bit, *at = offered_of(l, &bit);

	return fg_load_relaxed(at) & bit;
}

/* Before the offer. */
static void note_offered(const struct fg_lock *l)
{
	uint32_t bit, *at = offered_of(l, &bit);

	if (fg_unlikely(!(fg_load_relaxed(at) & bit)))
		fg_or_acq_rel(at, bit);
}

bool _fg_offer_make(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	/*
	 * One at a time.  Of a thread that has no other lock it is one that others have released
	 * for it.  And a lock at an address that is no multiple of eight has no room for the bits.
	 */
	if ((me->offer && has_several(t)) || (address(l) & FG_OFFER_BITS))
		return false;
	note_offered(l);
	fg_store_relaxed(&me->offer, address(l) | FG_OFFER_MADE);
	return true;
}

bool _fg_offer_withdraw(const struct fg_lock *l, struct fg_self *t)
{
	uint64_t made = address(l) | FG_OFFER_MADE;

#ifdef FG_BROKEN_OFFER /* a test proves that the tests notice */
	fg_store_relaxed(&fg_thread_mine(t)->offer, 0);
	return true;
#endif
	/* In a child of fork: made by the parent's thread, and as good. */
	return fg_cas64_acq_rel(&fg_thread_mine(t)->offer, &made, 0) ||
	       made != (address(l) | FG_OFFER_GIVEN);
}

void _fg_offer_none_below(struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	uint64_t offer = fg_load_relaxed(&me->offer);

	_fg_queue_leave_below(t);
	if ((offer & FG_OFFER_BITS) == FG_OFFER_MADE)
		fg_cas64_acq_rel(&me->offer, &offer, 0);
}

void _fg_offer_keep(const struct fg_lock *l, struct fg_self *t, uint32_t n)
{
	struct fg_thread *me = fg_thread_mine(t);

	fg_store_relaxed(&me->offer, address(l) | FG_OFFER_GIVEN);
	if (!_fg_queue_keep(n))
		return;
	fg_fence_local();
	me->kept = (n % FG_NODE_STEP + 1) & 3;
}

/* The node that the calling thread has kept; 0: none. */
static uint32_t kept_node(const struct fg_self *t)
{
	uint32_t kept = fg_thread_mine(t)->kept;

	return kept ? fg_id_index(t->id) * FG_NODE_STEP + kept - 1 : 0;
}

static uint32_t kept_no_longer(const struct fg_self *t)
{
	uint32_t n = kept_node(t);

	/* First: of what a signal handler does with it in between the node's state tells. */
	if (n)
		fg_thread_mine(t)->kept = 0;
	fg_fence_local();
	return n;
}

/* To the one that it has promised to tell. */
static bool give_as_promised(const struct fg_lock *l, struct fg_thread *me)
{
	uint64_t made = address(l) | FG_OFFER_MADE;
	struct fg_thread *to = fg_thread_of(me->notifies);
	uint32_t next;

	if (!_fg_may_be_given(me->notifies) ||
	    !fg_cas64_acq_rel(&to->offer, &made, address(l) | FG_OFFER_GIVEN))
		return false;
	/*
	 * What that one would tell the head, in its place: it is in its section now.  Not if that
	 * has ended meanwhile, and the head been told that the lock is free.
	 */
	next = fg_load_relaxed(&to->notifies);
	if (next && fg_load_relaxed(&to->notifies_of) == part_of_address(address(l)) &&
	    fg_load_relaxed(&to->offer) == (address(l) | FG_OFFER_GIVEN))
		fg_store_relaxed(&fg_thread_of(next)->notice, FG_NOTICE_STANDBY);
	me->notifies = 0;
	return true;
}

bool _fg_offer_give(struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	/* What others have released for it, this one perhaps, it does not know yet. */
	bool may = fg_is_not_forked() && fg_policy_has_monitor() && !me->sleepers &&
		   !rounds_are_short(t) && !fg_thread_has_released_by_others(t);
	uint32_t n = 0;

	/*
	 * Before the next one has it: who releases it for that one looks for a thread of which this
	 * is said, and there must be one (_fg_offer_take_back).
	 */
	if (was_given(t, address(l))) {
		n = kept_no_longer(t);
		fg_store_relaxed(&me->offer, 0);
	}
	if (n)
		return _fg_queue_give(l, t, n, may);
	return may && has_standby(t, address(l)) && give_as_promised(l, me);
}

uint32_t _fg_offer_settle(struct fg_lock *l, struct fg_self *t)
{
	uint32_t w = fg_load_relaxed(&l->word), former = w & FG_WORD_ID;

	/* Free, or of another: others have released it for this thread. */
	while ((w & FG_WORD_ID) && (w & FG_WORD_ID) == former &&
	       !fg_cas_relaxed(&l->word, &w, (w & ~FG_WORD_ID) | t->id))
		;
	return w;
}

void _fg_offer_end(struct fg_lock *l, struct fg_self *t)
{
	uint32_t n = kept_no_longer(t);

	if (n)
		_fg_queue_give(l, t, n, false);
	_fg_offer_settle(l, t);
	fg_store_relaxed(&fg_thread_mine(t)->offer, 0);
}

/*
 * Its owner may have freed it without a release, which does no harm to other locks.  Not exact: of
 * memory that is in use again it says what that looks like.
 */
static bool is_still_there(struct fg_lock *l)
{
	struct fg_deadline now;
	uint32_t id;

	fg_deadline_in(&now, 0);
	if (fg_futex_wait(&l->word, 0, FG_FUTEX_ANY, &now) == -EFAULT)
		return false;
	id = fg_load_relaxed(&l->word) & FG_WORD_ID; /* of one that gives, so it has a slot */
	return fg_id_has_slot(id) && !fg_id_is_foreign(id);
}

void _fg_offer_put_away(struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	uint64_t lock = me->offer & ~(uint64_t)FG_OFFER_BITS, given = lock | FG_OFFER_GIVEN;
	uint64_t both = given | FG_OFFER_MADE;
	struct fg_lock *l = (struct fg_lock *)(uintptr_t)lock;
	uint32_t n;
	bool is_mine;

	/* Or a signal handler waits on top of one that is at it. */
	if (!me->kept || (me->offer & FG_OFFER_BITS) == (FG_OFFER_GIVEN | FG_OFFER_MADE))
		return;
	/* First: who releases the lock for this thread waits for that, and may destroy it then. */
	is_mine = fg_cas64_acq_rel(&me->offer, &given, both);
	n = kept_node(t);
	if (n && !lock) /* taken back, before or just while it kept the node */
		_fg_queue_lost(n);
	else if (n && (!is_mine || is_still_there(l))) /* taken back: it may go at any moment */
		_fg_queue_give(l, t, n, false);
	else if (n)
		_fg_queue_forget(n);
	/* Last: one that ends in between leaves the node to settle_at_end(). */
	fg_fence_local();
	me->kept = 0;
	fg_fence_local();
	if (is_mine) /* not if that one has waited for long enough */
		fg_cas64_acq_rel(&me->offer, &both, lock | FG_OFFER_GIVEN);
}

/* No signal handler that waits for one who waits for this thread, where the call may be made. */
static void settle_at_end(struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	uint64_t given = address(l) | FG_OFFER_GIVEN, offer = given, all = ~0ull, before;
	bool may_call = fg_call_begins(t->id), is_mine, is_there;
	uint32_t n;

	if (may_call)
		fg_syscall6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, sizeof(all),
			    0, 0);
	/* Nobody takes it back, and frees it, before that. */
	is_mine = fg_cas64_acq_rel(&me->offer, &offer, given | FG_OFFER_ENDS) ||
		  /* it ends while it puts the role away */
		  (offer == (given | FG_OFFER_MADE) &&
		   fg_cas64_acq_rel(&me->offer, &offer, given | FG_OFFER_ENDS));
	is_there = !is_mine || is_still_there(l);
	n = kept_no_longer(t);
	if (n && is_there)
		_fg_queue_give(l, t, n, false);
	else if (n)
		_fg_queue_forget(n);
	if (is_mine) {
		if (is_there)
			_fg_offer_settle(l, t);
		fg_store_release(&me->offer, 0);
	}
	if (!may_call)
		return;
	fg_syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(all), 0, 0);
	fg_call_ends(t->id);
}

void _fg_offer_thread_ends(struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	uint64_t offer = fg_load_relaxed(&me->offer), lock = offer & ~(uint64_t)FG_OFFER_BITS;

	if (!lock)
		return;
	/* In a wait.  Given meanwhile: it has it, and leaves it behind. */
	if (!(offer & FG_OFFER_GIVEN) && fg_cas64_acq_rel(&me->offer, &offer, 0))
		return;
	settle_at_end((struct fg_lock *)(uintptr_t)lock, t);
}

/*
 * Its offer goes only if that is the one lock that it has, and knows of: a frame below a signal
 * handler, which has not looked yet, looks there.
 */
bool _fg_offer_after_fork(void)
{
	struct fg_self *t = &fg_self_tls;
	struct fg_thread *me;
	struct fg_lock *l;
	uint32_t n;

	if (!fg_has_slot(t) || t->only == FG_ONLY_NOT_SET_UP)
		return false;
	me = fg_thread_mine(t);
	l = (struct fg_lock *)(uintptr_t)(me->offer & ~(uint64_t)FG_OFFER_BITS);
	if (!was_given(t, address(l)))
		return false;
	if (is_still_there(l))
		_fg_offer_settle(l, t);
	if (t->only != (address(l) | FG_ONLY_SLOWLY) || t->role != FG_ROLE_NONE)
		return false;
	n = kept_no_longer(t);
	if (n) /* its node is new, soon */
		_fg_queue_forget(n);
	me->offer = 0;
	return true;
}

/* True if the offer is another one by now. */
static bool wait_for_change(const struct fg_thread *th, uint64_t offer)
{
	uint32_t nobody = 0;
	struct fg_deadline soon;

	for (uint32_t n = 0; fg_load_acquire(&th->offer) == offer; n++) {
		/* That of a thread which is not in this process never ends. */
		if (n == PATIENCE && (!(offer & FG_OFFER_ENDS) || !fg_is_not_forked()))
			return false;
		fg_deadline_in(&soon, SHORT_SLEEP_NS);
		fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &soon);
	}
	return true;
}

/* Returns the id of the thread with this index; 0: it has not been given the lock. */
static uint32_t take_from(struct fg_lock *l, struct fg_self *t, uint32_t index)
{
	const uint64_t given = address(l) | FG_OFFER_GIVEN;
	struct fg_thread *th = fg_thread_of(index);

	for (;;) {
		uint64_t offer = fg_load_acquire(&th->offer);
		uint32_t id = fg_id_at(index), kept = th->kept;

		if ((offer & ~(uint64_t)(FG_OFFER_MADE | FG_OFFER_ENDS)) != given)
			return 0;
		/* Not for what this signal handler has interrupted. */
		if (offer != given && th != fg_thread_mine(t) && wait_for_change(th, offer))
			continue;
		/* First: that thread may put its node away, too, and needs to know of what. */
		if (offer == given && kept)
			_fg_queue_pass_on(l, t, index * FG_NODE_STEP + kept - 1);
		if (fg_cas64_acq_rel(&th->offer, &offer, 0))
			return id;
	}
}

uint32_t _fg_offer_take_back(struct fg_lock *l, struct fg_self *t)
{
	uint32_t id = 0;

	if (!was_offered(l))
		return 0;
	for (uint32_t i = 1, last = fg_threads_highest(); i <= last && !id; i++)
		if (fg_thread_was(i))
			id = take_from(l, t, i);
	return id;
}
