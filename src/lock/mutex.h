/* SPDX-License-Identifier: MIT */
/*
 * The mutex: an _fg_lock with the types of POSIX, in the 40 bytes of a
 * pthread_mutex_t.  The kind stands where glibc has it and holds glibc's numbers,
 * so that its static initialisers are ours; everything else is ours alone.
 *
 * All functions return 0 or a positive error number.
 */
#ifndef FG_MUTEX_H
#define FG_MUTEX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/lock.h"
#include "runtime/trace.h"

enum {
	FG_KIND_NORMAL = 0,
	FG_KIND_RECURSIVE = 1,
	FG_KIND_ERRORCHECK = 2,
	FG_KIND_ADAPTIVE = 3, /* a hint to glibc; every mutex here adapts */
	FG_KIND_TYPE = 0x03,
	FG_KIND_ROBUST = 0x10,
	FG_KIND_INHERIT = 0x20,
	FG_KIND_PROTECT = 0x40,
	FG_KIND_SHARED = 0x80, /* also of all robust ones */
	FG_KIND_NATIVE = 0xf0, /* any of these four: not ours */
	FG_KIND_MOVABLE =
	    0x100, /* the API's: its owner may leave it, and the memory is another's */
	FG_KIND_NO_ELISION = 0x200, /* glibc's own note to itself */
};
/*
 * From this bit on, if chosen/mutex_ours.h counts them: threads that have released the mutex to
 * wait on a condition variable and have not taken it again; atomic.  Two to the 22, as there are
 * thread ids (PID_MAX_LIMIT).
 */
#define FG_KIND_WAITERS 10

struct fg_mutex {
	struct fg_lock lock; /* lock.tag: the kind, and FG_KIND_WAITERS */
	/* recursive: acquisitions beyond the first; guarded by the lock, as the next two */
	uint32_t count;
	uint32_t due_epoch;    /* fork epoch of `due`: a parent's waiters are not in the child */
	struct fg_waiter *due; /* signalled, and to be woken when this is released (cond.h) */
};
_Static_assert(sizeof(struct fg_mutex) == 40, "in place of pthread_mutex_t");
_Static_assert(offsetof(struct fg_mutex, lock.tag) == 16,
	       "glibc's static initialisers set the kind there");

struct fg_waiter;

/* Errors at a lock of its own, or a count of them, and only the owner releases it. */
static inline bool _fg_kind_knows_owner(uint32_t kind)
{
	uint32_t type = kind & FG_KIND_TYPE;

	return type == FG_KIND_RECURSIVE || type == FG_KIND_ERRORCHECK;
}

static inline bool _fg_kind_is_recursive(uint32_t kind)
{
	return (kind & FG_KIND_TYPE) == FG_KIND_RECURSIVE;
}

/* By the owner of a recursive one: 0 or EAGAIN, at glibc's limit. */
static inline int _fg_mutex_count_again(uint32_t *count)
{
	if (*count == UINT32_MAX)
		return EAGAIN;
	++*count;
	return 0;
}

/*
 * Which mutexes are ours, and what their places are used for: the library's build chooses between
 * this folder's chosen/mutex_ours.h and that of src/zoo, by the order of its include folders.  Each
 * has
 *
 *   _fg_mutex_is_normal()	ours, and of a type that does not know its owner
 *   _fg_mutex_is_ours()		not glibc's
 *   _fg_mutex_may_be_shared()	those that other processes know are ours, too
 *   _fg_mutex_kind()		lock.tag of a new one that is ours
 *   _fg_mutex_is_made()		to be initialised, in whatever memory: what this thread may
 *                                      have to forget of the one that was there
 *   _fg_mutex_waiters()		`more` threads wait on a condition variable with this mutex;
 *                                      the caller is one of them
 *   _fg_mutex_destroy()		0; EBUSY (held, or threads wait with it on a condition
 *                                      variable: they will take it again)
 *   _fg_mutex_wakes_at_release(), _fg_mutex_wake_at_release()
 *
 * The last two: a thread that has been signalled has to take its mutex before it returns.  If the
 * signaller holds that, and somebody sleeps for it already, a wake-up now leads from one sleep into
 * the next as likely as not.  So that is asked before the signal, and if true the second one
 * follows, by which the waiter is left to the release: its stack stays until then, as it cannot
 * return without the mutex.  NULL: it was no sleeper.  False: not left; the signaller wakes it.
 */
#include "mutex_ours.h"

/* fg_tid_place(): from then on a recursive mutex shows its owner. */
void _fg_mutex_shows(ptrdiff_t tid_place);

/* The release of a normal mutex, when _fg_unlock_fast() has not done it.  0. */
int _fg_mutex_unlock_slow(struct fg_mutex *m);

/* For all mutexes of ours; the fast paths for normal ones are _fg_lock_fast and _fg_unlock_fast. */

/*
 * The lock of one that does not know its owner.  A movable one is never given away: whose it is,
 * its memory tells alone, and nobody looks there later for what he was given.
 */
static inline int _fg_mutex_lock_long_way(struct fg_mutex *m, const struct fg_deadline *deadline)
{
	return fg_unlikely(m->lock.tag & FG_KIND_MOVABLE) ? _fg_lock_slow(&m->lock, deadline) :
							    _fg_lock_slow_any(&m->lock, deadline);
}

/* 0; ETIMEDOUT with a deadline; EDEADLK (errorcheck, own already); EAGAIN (recursion too deep). */
int _fg_mutex_lock_untraced(struct fg_mutex *m, const struct fg_deadline *deadline);
int _fg_mutex_lock_traced(struct fg_mutex *m, const struct fg_deadline *deadline,
			  const void *caller);

/* A normal one of pthread's, which is not movable, when _fg_lock_fast() has not got it. */
static inline int _fg_mutex_lock_slow(struct fg_mutex *m, const void *caller)
{
	return fg_is_traced() ? _fg_mutex_lock_traced(m, NULL, caller) :
				_fg_lock_slow_any(&m->lock, NULL);
}

/* One that is not normal.  As above. */
static inline int _fg_mutex_lock_typed(struct fg_mutex *m, const struct fg_deadline *deadline,
				       const void *caller)
{
	return fg_is_traced() ? _fg_mutex_lock_traced(m, deadline, caller) :
				_fg_mutex_lock_untraced(m, deadline);
}

static inline int _fg_mutex_lock(struct fg_mutex *m, const struct fg_deadline *deadline,
				 const void *caller)
{
	if (!_fg_mutex_is_normal(m))
		return _fg_mutex_lock_typed(m, deadline, caller);
	return fg_is_traced() ? _fg_mutex_lock_traced(m, deadline, caller) :
				_fg_mutex_lock_long_way(m, deadline);
}

/* 0 or EBUSY; EAGAIN (recursion too deep). */
int _fg_mutex_trylock(struct fg_mutex *m);
/* 0; EPERM (recursive, errorcheck: not the owner). */
int _fg_mutex_unlock(struct fg_mutex *m);

#endif
