/* SPDX-License-Identifier: MIT */
/*
 * The spinlock: the 4 bytes of a pthread_spinlock_t, with glibc's values, since
 * one in shared memory may be used by processes that run glibc's code.
 *
 *          x86                                     other CPUs
 *   free   1                                       0
 *   held   <= 0.  glibc's own waiters decrement    1, and all else that is not 0.
 *          it while they wait.                     They write 1 over it.
 *
 *          glibc's unlock stores what is free and wakes nobody.
 *
 *   ours   bits 12..27: index of the owner's slot, 0 = none; bit 31, which makes it
 *          negative; bits 28, 29 and 11, which are there to be borrowed from.  So
 *          a few thousand of those decrements spoil the hint at most, and the word
 *          never comes near 1.
 *
 * There is no room for "somebody sleeps", and an unlock that had to look for it
 * with an atomic would cost twice as much as glibc's.  Sleepers register
 * in a table of this process instead, set-associative like a cache, and an unlock
 * looks there after its plain store (spin.c).
 */
#ifndef FG_SPIN_H
#define FG_SPIN_H

#include <stdint.h>

#include "runtime/thread.h"
#include "runtime/trace.h"

#if defined(__x86_64__) || defined(__i386__)
#define FG_SPIN_FREE 1
#else
#define FG_SPIN_FREE 0
#endif
#define FG_SPIN_HELD 0xb0000800u

/* Not varied. */
#define FG_SPIN_BUCKETS 256u
/* locks of one bucket that have sleepers at once; the last way is for all others; not varied */
#ifndef FG_SPIN_WAYS /* fewer in the simulator, for two locks to need the last one */
#define FG_SPIN_WAYS 4u
#endif

/*
 * Legend of `who`.  A way belongs to a lock as long as anybody is counted in it.
 *
 *   0..15   sleepers: asleep, or about to be
 *   16..25  spinners: a release that finds one need not wake anybody.  Only those
 *           beside sleepers count themselves
 *   26      watched: one of the sleepers looks at the lock every CHECK_NS.  Not in the last way
 *   27      fenced: all CPUs have passed a barrier since there are sleepers, so whoever releases
 *           the lock sees that, and one sleeper more needs none (spin.c)
 *   28..31  epoch: raised by a fork that has emptied the way in the child, so that a
 *           wait that a signal handler's fork interrupted does not count itself out there
 *   32..63  key: which lock's; 0: nobody's, or the last way's
 */
struct fg_spin_way {
	uint64_t who;
	uint32_t wakes; /* what its sleepers sleep on */
	uint32_t unused;
};

struct fg_spin_bucket {
	/* of all ways, and from bit 24 on an epoch as above; each release reads this line */
	uint32_t sleepers;
	uint32_t unused[15];
	struct fg_spin_way way[FG_SPIN_WAYS];
} __attribute__((aligned(FG_CACHE_LINE)));
_Static_assert(sizeof(struct fg_spin_bucket) == 2 * FG_CACHE_LINE,
	       "one line for releases, one for waiters");

#define FG_SPIN_SLEEPERS 0xffffffu /* in _fg_spin_bucket.sleepers; above it the epoch */

extern struct fg_spin_bucket _fg_spin_buckets[FG_SPIN_BUCKETS];

void _fg_spin_lock_slow(int32_t *lock, struct fg_self *t, const void *caller);
void _fg_spin_lock_no_slot(int32_t *lock, const void *caller);
void _fg_spin_wake(int32_t *lock);
void _fg_spin_after_fork(void); /* in the child, by its only thread */

static inline uint32_t _fg_spin_hash(const int32_t *lock)
{
	return (uint32_t)((uintptr_t)lock >> 2) * 0x9e3779b1u;
}

static inline struct fg_spin_bucket *_fg_spin_bucket(const int32_t *lock)
{
	return &_fg_spin_buckets[_fg_spin_hash(lock) >> 24];
}

/* In the section from before the word says so: the monitor misses no holder. */
static inline bool _fg_spin_take(int32_t *lock, struct fg_self *t, uint32_t held)
{
	uint32_t free = FG_SPIN_FREE;

	fg_section_enter(t);
#ifdef FG_BROKEN_SPIN /* a test proves that the tests notice */
	return true;
#endif
	/* Acquire: pairs with the release in _fg_spin_unlock(). */
	if (fg_likely(fg_cas_acquire((uint32_t *)lock, &free, held)))
		return true;
	fg_section_leave(t);
	return false;
}

static inline bool _fg_spin_trylock(int32_t *lock, struct fg_self *t)
{
	uint32_t index = fg_id_has_slot(t->id) ? fg_id_index(t->id) : 0;

	return _fg_spin_take(lock, t, FG_SPIN_HELD | index << 12);
}

/*
 * What is rare is the last that is called, so that the fast paths need no stack: each store that
 * comes before an atomic delays it.
 */
static inline void _fg_spin_lock(int32_t *lock, const void *caller)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t id = t->id;

	if (fg_unlikely(!fg_id_has_slot(id))) /* nor has one that is not set up */
		_fg_spin_lock_no_slot(lock, caller);
	else if (fg_unlikely(!_fg_spin_take(lock, t, FG_SPIN_HELD | fg_id_index(id) << 12)))
		_fg_spin_lock_slow(lock, t, caller);
}

static inline void _fg_spin_unlock(int32_t *lock)
{
	struct fg_spin_bucket *b = _fg_spin_bucket(lock);

	/* After this the lock may be gone. */
	fg_store_release(lock, FG_SPIN_FREE);
	fg_fence_local();
	/* The other half of this order is a sleeper's membarrier(2), or its time limit. */
	if (fg_unlikely(fg_load_relaxed(&b->sleepers) & FG_SPIN_SLEEPERS))
		_fg_spin_wake(lock);
	/* One that is not set up is in none. */
	fg_section_leave(&fg_self_tls);
}

#endif
