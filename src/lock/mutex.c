/* SPDX-License-Identifier: MIT */
/* The types of mutexes: what happens before the lock is asked for. */
#include "lock/mutex.h"

#include "lock/cond.h"

static bool knows_owner(const struct fg_mutex *m)
{
	uint32_t type = m->lock.tag & FG_KIND_TYPE;

	return type == FG_KIND_RECURSIVE || type == FG_KIND_ERRORCHECK;
}

static bool is_recursive(const struct fg_mutex *m)
{
	return (m->lock.tag & FG_KIND_TYPE) == FG_KIND_RECURSIVE;
}

static bool owned(struct fg_mutex *m)
{
	struct fg_self *t = fg_self();
	/* Relaxed: only we can have written our own id. */
	uint32_t owner = fg_load_relaxed(&m->lock.word) & FG_WORD_ID;

	if (fg_unlikely(owner && owner == fg_former_id(t))) {
		fg_lock_adopt(&m->lock, owner);
		return true;
	}
	return owner == t->id;
}

static int lock_again(struct fg_mutex *m)
{
	if (m->count == UINT32_MAX)
		return EAGAIN;
	m->count++;
	return 0;
}

int fg_mutex_lock_until(struct fg_mutex *m, const struct fg_deadline *deadline)
{
	/* A thread that holds nothing holds not this one: no look at the word before the CAS (lock.h). */
	if (fg_lock_only(&m->lock))
		return 0;
	if (knows_owner(m) && owned(m))
		return is_recursive(m) ? lock_again(m) : EDEADLK;
	return fg_lock_general(&m->lock, deadline);
}

int fg_mutex_try(struct fg_mutex *m)
{
	if (is_recursive(m) && owned(m))
		return lock_again(m);
	return fg_trylock(&m->lock) ? 0 : EBUSY;
}

int fg_mutex_release(struct fg_mutex *m)
{
	if (knows_owner(m)) {
		/* `count` is ours to read if the release finds that the lock is. */
		if (!fg_load_relaxed(&m->count) && fg_unlock_only(&m->lock))
			return 0;
		if (!owned(m))
			return EPERM;
		if (m->count) {
			m->count--;
			return 0;
		}
	}
	if (!fg_unlock_only(&m->lock))
		fg_mutex_unlock_general(m);
	return 0;
}

/* ---- waiters of condition variables, to be woken at the release --------------------------- */

/* Sleepers stay sleepers until the release, which therefore comes to fg_mutex_unlock_general(). */
bool fg_mutex_wakes_at_release(struct fg_mutex *m)
{
	return fg_mutex_is_normal(m) && owned(m) && fg_load_relaxed(&m->lock.word) & FG_WORD_WAITERS;
}

void fg_mutex_wake_at_release(struct fg_mutex *m, struct fg_waiter *n)
{
	n->next = m->due_epoch == fg_epoch ? m->due : NULL;
	m->due = n;
	m->due_epoch = fg_epoch;
}

static __attribute__((noinline)) void unlock_and_wake(struct fg_mutex *m)
{
	struct fg_waiter *n = m->due_epoch == fg_epoch ? m->due : NULL;
	uint32_t *word[FG_WAKE_BATCH], count = 0;

	for (; n; n = n->next) {
		if (count == FG_WAKE_BATCH)
			fg_futex_wake(&n->word, 1, FG_FUTEX_ANY);
		else
			word[count++] = &n->word;
	}
	m->due = NULL;
	fg_unlock_general(&m->lock);
#ifdef FG_BROKEN_DUE /* a test proves that the tests notice */
	return;
#endif
	/* Those that were signalled first are the last of the list.  Addresses: the waiters may have returned. */
	while (count)
		fg_futex_wake(word[--count], 1, FG_FUTEX_ANY);
}

void fg_mutex_unlock_general(struct fg_mutex *m)
{
	if (fg_unlikely(m->due != NULL))
		unlock_and_wake(m);
	else
		fg_unlock_general(&m->lock);
}

__attribute__((noinline, cold)) int fg_mutex_lock_traced(struct fg_mutex *m, const struct fg_deadline *deadline,
							 const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = fg_mutex_lock_until(m, deadline);

	fg_trace_ends(&t, m, caller);
	return r;
}
