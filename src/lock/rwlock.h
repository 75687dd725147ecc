/* SPDX-License-Identifier: MIT */
/*
 * The reader-writer lock: 56 bytes in place of a pthread_rwlock_t, zero is free.
 *
 *   gate      held by the writer, from before it waits for the readers until it
 *             unlocks; by a reader that had to wait, for a moment.  So writers and
 *             waiting readers stand in one queue, that of the FlexGuard lock.
 *   readers   who reads, in two places: a count here, and, while `bias` is set,
 *             a table of visible readers, where readers of one lock share no
 *             cache line (Dice, Kogan, "BRAVO: Biased Locking for Reader-Writer
 *             Locks", ATC 2019).
 *
 * Legend of `readers`
 *
 *   0..27  readers that are counted, and for a moment those that find that they
 *          must wait
 *   DRAINER_SLEEPS (30)  the writer sleeps until the count is 0.  Set and cleared
 *          by the owner of the gate.
 *   WRITER_IN (31)  the writer has seen no reader and is in.  Set by it with
 *          the count at 0.  Means nothing unless a writer has the gate, since
 *          nobody clears it at the unlock: the release of the gate is the last
 *          that a writer does to the lock, so that the next owner may destroy it.
 *
 * The order of threads.  A reader waits for a writer that waits for readers: writers
 * do not starve.  Kinds other than WRITERS_FIRST promise that readers do not
 * wait for readers, so there a reader passes the waiting writer after all if it holds
 * a read lock already (a recursive one must not wait), or has waited for
 * FG_RW_PATIENCE_NS behind one writer (another reader may wait for it), or longer where
 * readers lately had to wait for longer while writers came and went.
 *
 * All functions return 0 or a positive error number.  docs/design/rwlock.md.
 */
#ifndef FG_RWLOCK_H
#define FG_RWLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "lock/lock.h"
#include "runtime/decide.h"
#include "runtime/trace.h"

enum { FG_RW_WRITERS_FIRST = 2 }; /* glibc's number; every other kind is its default one */

/*
 * As long as reading sections last less, a writer is not starved by those that overlap.  1 us
 * instead made many threads slower (docs/design/rwlock.md).
 */
#define FG_RW_PATIENCE_NS   10000000u
#define FG_RW_PATIENCE_MOST 3u /* 640 ms; docs/design/experiments.md, "Patience" */

#define FG_RW_WROTE 0x80000000u /* in last_reader: a writer has come after it */

/* What readers lose before a lock gets the bias for the first time. */
#define FG_RW_FIRST_NS 400u

/*
 * With one, readers may enter through the table.  The second: of a lock that has not been written
 * for long; readers have no barrier then, and the next writer makes it for all.
 */
enum fg_rw_bias { FG_RW_UNBIASED, FG_RW_BIASED, FG_RW_ASYMMETRIC };

/*
 * What entries with this address in the table are.  Of a lock that was here before, whose readers
 * ended without an unlock, until somebody has seen to them; only then is there a bias.
 */
enum fg_rw_table { FG_RW_TABLE_OLD, FG_RW_TABLE_SEEN_TO, FG_RW_TABLE_OWN };

struct fg_rwlock {
	struct fg_lock gate; /* gate.tag: the latest writer, and what it is (rwlock_paths.h) */
	uint32_t readers;
	uint32_t shared; /* glibc's: not 0 if process-shared, and then not ours */
	uint32_t bias;	 /* enum fg_rw_bias; cleared by the owner of the gate */
	/*
	 * Without the bias: ns that readers lose until it is set, less FG_RW_FIRST_NS. With it:
	 * since when it has been seen, us, as time_now() in rwlock_bias.c has it, if it has.
	 */
	uint32_t inhibit;
	uint32_t table;	      /* enum fg_rw_table */
	uint32_t last_reader; /* id of the last that was counted, no writer about; FG_RW_WROTE */
	uint32_t kind;	      /* glibc's static initialisers set it there */
	/*
	 * Of a reader behind a writer: FG_RW_PATIENCE_NS times 4 to this.  In the padding of
	 * glibc's type, where an initialiser may leave anything.
	 */
	uint32_t patience;
};
_Static_assert(sizeof(struct fg_rwlock) == 56, "in place of pthread_rwlock_t");
_Static_assert(offsetof(struct fg_rwlock, shared) == 28 && offsetof(struct fg_rwlock, kind) == 48,
	       "glibc's initialisers");

/* EDEADLK if this thread writes; EAGAIN if there are 2^28 - 2^23 readers; ETIMEDOUT. */
int _fg_rwlock_rdlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline);
/* EDEADLK if this thread writes; ETIMEDOUT. */
int _fg_rwlock_wrlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline);
int _fg_rwlock_rdlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller);
int _fg_rwlock_wrlock_traced(struct fg_rwlock *rw, const struct fg_deadline *deadline,
			     const void *caller);

static inline int _fg_rwlock_rdlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
				    const void *caller)
{
	return fg_is_traced() ? _fg_rwlock_rdlock_traced(rw, deadline, caller) :
				_fg_rwlock_rdlock_untraced(rw, deadline);
}

static inline int _fg_rwlock_wrlock(struct fg_rwlock *rw, const struct fg_deadline *deadline,
				    const void *caller)
{
	return fg_is_traced() ? _fg_rwlock_wrlock_traced(rw, deadline, caller) :
				_fg_rwlock_wrlock_untraced(rw, deadline);
}

/* EBUSY, EAGAIN */
int _fg_rwlock_tryrdlock(struct fg_rwlock *rw);
/* EBUSY */
int _fg_rwlock_trywrlock(struct fg_rwlock *rw);
/* Always 0: a lock that nobody holds is left alone. */
int _fg_rwlock_unlock(struct fg_rwlock *rw);
/* Nobody uses it any more: a thread that has it to write says so no longer. */
void _fg_rwlock_destroy(struct fg_rwlock *rw);

#endif
