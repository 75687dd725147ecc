/* SPDX-License-Identifier: MIT */
/*
 * The condition variable: a FIFO of waiters, but for real-time priorities, each on a word of its
 * own on its own stack, guarded by an _fg_lock.  48 bytes, zero is "nobody waits".  Tickets
 * and sequence counters lose signals, to waiters that fall asleep late and to
 * those that time out; individually enqueued waiters do not (docs/design/cond.md).
 *
 *   waiter's word   meaning                             who moves it on
 *   WAITING         in the list, spinning               waiter -> ASLEEP, GONE; signaller ->
 *                                                       SIGNALED, LAST
 *   ASLEEP          in the list; has to be woken        signaller -> SIGNALED, LAST; waiter -> GONE
 *   SIGNALED        out of the list, others remain      -
 *   LAST            out of the list, by a broadcast or  -
 *                   as the last one
 *   GONE            timed out or cancelled, still in    the waiter, which takes itself out
 *                   the list
 *
 * A waiter first spins, while fg_decide() expects that the signal comes soon; then a
 * signal is a store and no system call.
 *
 * A signaller that holds the waiter's mutex, for which others sleep, leaves the
 * wake-up to the release (_fg_mutex_wake_at_release).
 *
 * Destruction right after the last waiter was signalled is legal, so a waiter
 * never touches the condition variable while it waits, and one in LAST never
 * again.  One in GONE or SIGNALED does, once: to leave the list; to pass its
 * signal on if it is cancelled, or to say that it will not.  _fg_cond_destroy
 * waits for those.
 */
#ifndef FG_COND_H
#define FG_COND_H

#include "lock/lock.h"
#include "lock/mutex.h"

/*
 * So many sleepers of a broadcast are woken after the list's lock has been released; those beyond,
 * before.  An array on the stack; not varied.
 */
#define FG_WAKE_BATCH 64u

/* How often destruction looks whether the last waiters, on their way, have left.  Not varied. */
#define FG_COND_DRAIN_NS 100000u

#define FG_PRIORITY_UNASKED 255u
struct fg_waiter {
	/* guarded by fg_cond.lock; once out of that list, `next` by the mutex (its `due`) */
	struct fg_waiter *next, *prev;
	uint32_t word;
	/* These three are valid from ASLEEP on. */
	bool spun;		/* before it slept */
	uint8_t priority;	/* fg_real_time_priority(), or FG_PRIORITY_UNASKED */
	uint32_t tid;		/* to ask for that */
	struct fg_mutex *mutex; /* that it has to take before it returns; NULL: not one of ours */
};

/*
 * Those that are process-shared are glibc's, and told by bit 0 of a word of flags that glibc has at
 * offset 36 up to 2.40, and at 28 from 2.41 on (__wrefs).  Which of the two is known only when the
 * process runs (preload/cond_bridge.c), so in ours that bit is 0 at both places.
 */
struct fg_cond {
	struct fg_lock lock; /* lock.tag: waiters in SIGNALED; atomic */
	uint64_t first;	     /* guarded by lock, as `last`: _fg_cond_first() */
	/* fork epoch of lock and list: a parent's threads do not exist in the child */
	uint32_t epoch;
	/* FG_COND_*, and from bit FG_COND_HISTORY on an fg_spin_history, guarded by lock */
	uint32_t flags;
	struct fg_waiter *last;
};
#define FG_COND_SHARED	  1u /* glibc's bit: initialised as process-shared, not ours */
#define FG_COND_MONOTONIC 2u /* glibc's bit: timed waits are on CLOCK_MONOTONIC */
#define FG_COND_GLIBC	  3u
#define FG_COND_HISTORY	  8  /* of private ones only */
#define FG_COND_FLAGS_AT  28 /* glibc's, from 2.41 on */
_Static_assert(sizeof(struct fg_cond) == 48, "in place of pthread_cond_t");

/* An address with its halves swapped, so that the one that ends in zeroes is at offset 28. */
static inline uint64_t _fg_cond_swapped(uint64_t address)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return address << 32 | address >> 32;
#else
	return address;
#endif
}

static inline struct fg_waiter *_fg_cond_first(const struct fg_cond *c)
{
	return (struct fg_waiter *)(uintptr_t)_fg_cond_swapped(c->first);
}

static inline void _fg_cond_set_first(struct fg_cond *c, const struct fg_waiter *n)
{
	fg_store_relaxed(&c->first, _fg_cond_swapped((uintptr_t)n));
}

/* That of its timed waits. */
static inline clockid_t _fg_cond_clock(const struct fg_cond *c)
{
	return fg_load_relaxed(&c->flags) & FG_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/*
 * A process that came from this one uses it, in memory that both share, though
 * it is not process-shared.  POSIX leaves that open and glibc survives it: so
 * the list, which holds addresses of that process, is left alone.
 */
static inline bool _fg_cond_is_a_childs(const struct fg_cond *c)
{
	return fg_load_relaxed(&c->epoch) > fg_epoch;
}

/* The caller's mutex, of whatever kind: the condition variable only releases and takes it. */
struct fg_cond_mutex {
	int (*unlock)(void *mutex); /* 0, or an error that ends the wait before it began */
	int (*lock)(void *mutex);
	void *mutex;
	struct fg_mutex *ours; /* the same, or NULL: not one of ours */
};

/* At the start of a wait: 0, or the error of `unlock`.  Counted, so that it is not destroyed. */
static inline int _fg_cond_let_go(const struct fg_cond_mutex *m)
{
	int r;

	if (m->ours)
		_fg_mutex_waiters(m->ours, 1);
	r = m->unlock(m->mutex);
	if (r && m->ours)
		_fg_mutex_waiters(m->ours, -1u);
	return r;
}

/* At its end: 0, or the error of `lock`. */
static inline int _fg_cond_take_back(const struct fg_cond_mutex *m)
{
	int r = m->lock(m->mutex);

	if (m->ours)
		_fg_mutex_waiters(m->ours, -1u);
	return r;
}

/* 0, ETIMEDOUT, or what unlock or lock returned.  A cancellation point. */
int _fg_cond_wait(struct fg_cond *c, const struct fg_cond_mutex *m,
		  const struct fg_deadline *deadline);
void _fg_cond_after_fork(void); /* in the child, by its only thread */
void _fg_cond_signal_slow(struct fg_cond *c);
void _fg_cond_broadcast_slow(struct fg_cond *c);

/* One that the caller can know of appended itself before it released its mutex: no lock. */
static inline bool _fg_cond_nobody_waits(const struct fg_cond *c)
{
	return fg_likely(!fg_load_relaxed(&c->first)) || fg_unlikely(_fg_cond_is_a_childs(c));
}

static inline void _fg_cond_signal(struct fg_cond *c)
{
	if (!_fg_cond_nobody_waits(c))
		_fg_cond_signal_slow(c);
}

static inline void _fg_cond_broadcast(struct fg_cond *c)
{
	if (!_fg_cond_nobody_waits(c))
		_fg_cond_broadcast_slow(c);
}

/*
 * Waits for waiters that are on their way out by themselves; waiting ones are the caller's mistake.
 */
void _fg_cond_destroy(struct fg_cond *c);

#endif
