/* SPDX-License-Identifier: MIT */
/* The types of mutexes: what happens before the lock is asked for. */
#include "lock/mutex.h"

#include "lock/cond.h"
#include "lock/held.h"

/*
 * glibc has the owner's tid in the third word.  That is none of a program's business, but Chromium,
 * and what is built on it, learns in this way, of a recursive mutex, what glibc takes for its tid:
 * it corrects that in a child of its own clone(2) in a new pid namespace, and ends where the two
 * differ.  So does Firefox, with the locks of its malloc held.  So the tid is glibc's, as it is at
 * that moment.  There is lock.prev, which nobody looks at while this is one of two locks at most
 * (held.h), nor of a thread that has forgotten the order of its locks.  A release leaves it there:
 * to take it back costs a seventh of an acquisition and its release (uncontended), and who looks
 * then goes by the first word.
 */
static ptrdiff_t place; /* of it, from the thread pointer on; 0: not known */

void _fg_mutex_shows(ptrdiff_t tid_place)
{
	place = tid_place;
}

/* This thread has taken it, and does not need lock.prev. */
static inline void show_owner(struct fg_mutex *m)
{
	const char *self = __builtin_thread_pointer();
	ptrdiff_t at = place;

	_Static_assert(offsetof(struct fg_mutex, lock.prev) == 8, "glibc's owner is there");
	if (_fg_kind_is_recursive(m->lock.tag) && at)
		fg_store_relaxed((uint32_t *)&m->lock.prev,
				 fg_load_relaxed((const uint32_t *)(self + at)));
}

/* This thread has taken it, beside others perhaps: it forgets their order before lock.prev goes. */
static inline void show_owner_beside(struct fg_mutex *m)
{
	struct fg_self *t = &fg_self_tls;

	if (has_several(t) && t->held > 2 && _fg_kind_is_recursive(m->lock.tag) && place) {
		t->unordered = 1;
		fg_fence_local();
	}
	show_owner(m);
}

/* By the id that this thread had before. */
static __attribute__((noinline)) bool owned_formerly(struct fg_mutex *m, uint32_t owner)
{
	if (!owner || owner != fg_former_id(fg_self()))
		return false;
	_fg_lock_adopt(&m->lock, owner);
	return true;
}

/* Relaxed: only we can have written our own id. */
static inline uint32_t owner_of(const struct fg_mutex *m)
{
	return fg_load_relaxed(&m->lock.word) & FG_WORD_ID;
}

/* By the id that this thread has now; false if it has none yet. */
static inline bool owned_now(const struct fg_mutex *m)
{
	uint32_t owner = owner_of(m);

	return owner && owner == fg_self_tls.id;
}

static inline bool owned(struct fg_mutex *m)
{
	return fg_likely(owned_now(m)) || owned_formerly(m, owner_of(m));
}

/*
 * In a child of fork.  The handlers of pthread_atfork() may have locked it, and initialise it anew
 * there in place of a release (jemalloc's do): a thread that goes on counting it looks critical to
 * the monitor, and takes each lock the long way, for ever.
 */
void _fg_mutex_forget(struct fg_mutex *m)
{
	const struct fg_self *t = fg_self();

	if (_fg_mutex_is_ours(m) && fg_has_slot(t) && locks_announced(t) &&
	    (fg_load_relaxed(&m->lock.word) & FG_WORD_ID) == t->id)
		_fg_unlock(&m->lock);
}

/* Out of line, as unlock_long_way(): the usual ways of both need no stack. */
static __attribute__((noinline)) int lock_long_way(struct fg_mutex *m,
						   const struct fg_deadline *deadline)
{
	int r;

	if (!_fg_kind_knows_owner(m->lock.tag))
		return _fg_mutex_lock_long_way(m, deadline);
	if (owned(m))
		return _fg_kind_is_recursive(m->lock.tag) ? _fg_mutex_count_again(&m->count) :
							    EDEADLK;
	r = _fg_lock_slow(&m->lock, deadline);
	if (!r)
		show_owner_beside(m);
	return r;
}

int _fg_mutex_lock_untraced(struct fg_mutex *m, const struct fg_deadline *deadline)
{
	/*
	 * A thread that holds nothing holds not this one: no look at the word before the CAS
	 * (lock.h).
	 */
	if (_fg_lock_fast(&m->lock)) {
		show_owner(m);
		return 0;
	}
	if (_fg_kind_is_recursive(m->lock.tag) && owned_now(m))
		return _fg_mutex_count_again(&m->count);
	return lock_long_way(m, deadline);
}

int _fg_mutex_trylock(struct fg_mutex *m)
{
	if (_fg_kind_is_recursive(m->lock.tag) && owned(m))
		return _fg_mutex_count_again(&m->count);
	if (!_fg_trylock(&m->lock))
		return EBUSY;
	show_owner_beside(m);
	return 0;
}

static __attribute__((noinline)) int unlock_long_way(struct fg_mutex *m)
{
	if (_fg_kind_knows_owner(m->lock.tag)) {
		if (!owned(m))
			return EPERM;
		if (m->count) {
			m->count--;
			return 0;
		}
	}
	return _fg_unlock_fast(&m->lock) ? 0 : _fg_mutex_unlock_slow(m);
}

int _fg_mutex_unlock(struct fg_mutex *m)
{
	/* Ours to read if the release, or the word, says that the lock is; of a normal one 0. */
	uint32_t count = fg_load_relaxed(&m->count);

	if (!count) {
		if (_fg_unlock_fast(&m->lock))
			return 0;
	} else if (owned_now(m)) {
		m->count = count - 1;
		return 0;
	}
	return unlock_long_way(m);
}

/* ---- waiters of condition variables, to be woken at the release --------------------------- */

/*
 * Errs on the side of false.  The word is not enough: it may say so of one that has given the lock
 * away (offer.h).  Here that of the condition variable has come after it.
 */
static bool holds(const struct fg_mutex *m)
{
	const struct fg_self *t = &fg_self_tls;
	uint64_t lock = address(&m->lock);

	return says_it_holds(t, lock) &&
	       (was_given(t, lock) || (fg_load_relaxed(&m->lock.word) & FG_WORD_ID) == t->id);
}

/*
 * Sleepers stay sleepers until the release, which therefore comes to _fg_mutex_unlock_slow().  That
 * may be another thread's, which waits until this one has put the waiter into the list or may not
 * any more.
 */
bool _fg_mutex_wakes_at_release(struct fg_mutex *m)
{
	const struct fg_self *t = &fg_self_tls;

	if (!_fg_mutex_is_normal(m) || !holds(m) ||
	    !(fg_load_relaxed(&m->lock.word) & FG_WORD_WAITERS) || !fg_has_slot(t))
		return false;
#ifdef FG_BROKEN_DEFERS /* a test proves that the tests notice */
	return true;
#endif
	if (!fg_thread_defers(fg_thread_mine(t)))
		return false;
	/* Once more: before that somebody may have released it, and this thread forgotten it. */
	if (holds(m))
		return true;
	fg_thread_has_deferred(fg_thread_mine(t));
	return false;
}

bool _fg_mutex_wake_at_release(struct fg_mutex *m, struct fg_waiter *n)
{
	struct fg_thread *me = fg_thread_mine(&fg_self_tls);
	uint32_t epoch = fg_epoch;
	bool may = n;

#ifndef FG_BROKEN_DEFERS
	may = n && fg_thread_writes(me);
#endif
	/* As little as there can be: who releases it for this thread waits. */
	if (may) {
		n->next = m->due_epoch == epoch ? m->due : NULL;
		m->due = n;
		m->due_epoch = epoch;
	}
	fg_thread_has_deferred(me);
	return may;
}

static __attribute__((noinline)) int unlock_beside_waiters(struct fg_mutex *m)
{
	const struct fg_self *t = fg_self();
	bool given = was_given(t, address(&m->lock));
	/* First: after that nobody puts one more into the list. */
	uint32_t owner = given ? 0 : _fg_lock_released_for(&m->lock);
	uint32_t *word[FG_WAKE_BATCH], count = 0;
	struct fg_waiter *n;

	/* Nobody has it: the list may be of the next that does. */
	if (!given && !owner && (fg_load_relaxed(&m->lock.word) & FG_WORD_ID) != t->id)
		return _fg_unlock_slow(&m->lock);
	n = m->due_epoch == fg_epoch ? m->due : NULL;
	for (; n; n = n->next) {
		if (count == FG_WAKE_BATCH)
			fg_futex_wake(&n->word, 1, FG_FUTEX_ANY);
		else
			word[count++] = &n->word;
	}
	m->due = NULL;
	if (owner)
		_fg_unlock_for(&m->lock, owner);
	else
		_fg_unlock_slow(&m->lock);
#ifdef FG_BROKEN_DUE /* a test proves that the tests notice */
	return 0;
#endif
	/*
	 * Those that were signalled first are the last of the list.  Addresses: the waiters may
	 * have returned.
	 */
	while (count)
		fg_futex_wake(word[--count], 1, FG_FUTEX_ANY);
	return 0;
}

/* Without waiters there are none in the list, nor comes one into it. */
int _fg_mutex_unlock_slow(struct fg_mutex *m)
{
	return fg_unlikely(fg_load_relaxed(&m->lock.tag) >> FG_KIND_WAITERS) ?
		   unlock_beside_waiters(m) :
		   _fg_unlock_slow(&m->lock);
}
