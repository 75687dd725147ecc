/* SPDX-License-Identifier: MIT */
/*
 * The table of visible readers: who reads a reader-writer lock that has the bias (rwlock.h),
 * without a word that readers share (Dice, Kogan, "BRAVO: Biased Locking for Reader-Writer Locks",
 * ATC 2019).
 *
 * Each thread has a line, and it alone writes the entries there.  So where a lock is hardly ever
 * written, a reader needs no atomic instruction: the order of its entry and its look at the bias is
 * made by the writer that takes the bias back (asymmetric.h), as in the passive reader-writer lock
 * (Liu, Zhang, Chen, "Scalable Read-mostly Synchronization Using Passive Reader-Writer Locks", ATC
 * 2014).  Where it is written more often that costs more than it saves, and a reader has the
 * barrier.  What others have to say of an entry they say beside it:
 *
 *   released  of a column: this lock's entry in the line does not count any more, since another
 *             thread has unlocked it.  Whoever clears the entry later has released nothing by
 *             that, and takes its own place back elsewhere, in the count; that is where the
 *             place is which the other thread meant.
 *   notice    tells the thread, after it has cleared an entry, to look at the rest of this
 *   gone      what writers sleep on that wait for an entry of the line: changes when one goes
 *
 * For each lock, at any time: those who read it are the entries that count and the count in
 * `readers`, or fewer for a moment.  docs/design/rwlock.md.
 */
#ifndef FG_VISIBLE_H
#define FG_VISIBLE_H

#include "arch/arch.h"
#include "runtime/thread.h"
#include "sys/asymmetric.h"

/*
 * More threads than can run at once; those above are counted.  Locks that meet in a column of a
 * line, of which a thread reads more than one at a time, are counted, too.  Sizes: not varied.
 */
#ifndef FG_VISIBLE_LINES /* fewer in the simulator, for its few threads and locks to meet */
#define FG_VISIBLE_LINES 1024
#endif
#ifndef FG_VISIBLE_COLUMNS
#define FG_VISIBLE_COLUMNS 7
#endif

enum {
	FG_NOTICE_WANTED = 1,	/* a writer sleeps until an entry goes */
	FG_NOTICE_RELEASED = 2, /* something is, or was once, in `released` */
};

struct fg_visible_line {
	uint64_t entry[FG_VISIBLE_COLUMNS]; /* address of a lock, 0, or FG_VISIBLE_CLOSED */
	uint32_t notice;
	uint32_t gone;
	uint64_t released[FG_VISIBLE_COLUMNS];
} __attribute__((aligned(FG_CACHE_LINE)));
extern struct fg_visible_line _fg_visible[FG_VISIBLE_LINES] __attribute__((visibility("hidden")));

/*
 * Its thread is between a look at an entry and a store to it, or has cleared one and is about to
 * see whether it counted.  A signal handler that comes then keeps away from the line: it is
 * counted, and unlocks as another thread would.  If it forks, the child has to know which of them.
 */
enum { FG_TABLE_ENTERS = 1, FG_TABLE_LEAVES };
extern __thread uint8_t fg_at_table;

#define FG_VISIBLE_CLOSED 1 /* an entry: no lock's, and none comes there (settle) */

static inline uint32_t fg_visible_column(const void *lock)
{
	uint32_t mixed = (uint32_t)((uintptr_t)lock >> 3) * 0x9e3779b1u; /* 2^32 / golden ratio */

	return (uint32_t)((uint64_t)mixed * FG_VISIBLE_COLUMNS >> 32);
}

/* Of the thread with this id, which has a slot.  NULL: it has none. */
static inline struct fg_visible_line *fg_visible_of(uint32_t id)
{
	return fg_likely(fg_id_index(id) < FG_VISIBLE_LINES) ? &_fg_visible[fg_id_index(id)] : NULL;
}

static inline struct fg_visible_line *fg_visible_mine(const struct fg_self *t)
{
	return fg_likely(fg_id_has_slot(t->id)) ? fg_visible_of(t->id) : NULL;
}

/* Does its thread read the lock by an entry there? */
static inline bool fg_visible_reads(const struct fg_visible_line *line, const void *lock)
{
	uint32_t column = fg_visible_column(lock);
	uint64_t address = (uintptr_t)lock;

	/*
	 * Acquire: pairs with the release in fg_visible_clear(), and with those of who has released
	 * it for its thread.
	 */
	return fg_load_acquire(&line->entry[column]) == address &&
	       fg_load_acquire(&line->released[column]) != address;
}

/*
 * `id`: of the calling thread, which has a slot.  False: not by the table.  True: it is seen to
 * read, from before its next look at the bias on; if `asymmetric`, by who has called
 * _fg_visible_all_seen() since it took the bias back.  As everywhere here, it is in a section from
 * before others may see it: a writer waits for it from then on, also if it loses its CPU before it
 * knows that it reads.
 */
static inline bool fg_visible_enter(struct fg_self *t, uint32_t id, const void *lock,
				    bool asymmetric)
{
	struct fg_visible_line *line = fg_visible_of(id);
	uint64_t *entry;

	if (fg_unlikely(!line || fg_at_table))
		return false;
	entry = &line->entry[fg_visible_column(lock)];
	fg_at_table = FG_TABLE_ENTERS;
	fg_fence_local();
	if (fg_unlikely(
		fg_load_relaxed(entry))) { /* read by this thread already, or another lock */
		fg_at_table = 0;
		return false;
	}
	fg_section_enter(t);
	/*
	 * Release: a writer of the lock that this thread read by the entry before may find this one
	 * there, and sees that it has left (acquire in fg_visible_reads; found by `fgsim --weak`).
	 */
	if (asymmetric)
		fg_store_release(entry, (uintptr_t)lock);
	else
		__atomic_exchange_n(entry, (uintptr_t)lock, __ATOMIC_SEQ_CST);
	fg_fence_local();
	fg_at_table = 0;
	if (asymmetric)
		fg_fence_light(); /* with _fg_visible_all_seen() */
	else
		fg_fence_after_rmw();
	return true;
}

enum fg_visible_leaves {
	FG_VISIBLE_NOT_THERE,
	FG_VISIBLE_GONE,    /* its place was there and is not any more: the lock may be gone */
	FG_VISIBLE_NOT_ITS, /* its entry is gone, which did not count: its place is elsewhere */
	FG_VISIBLE_NOTICED, /* its entry is gone; which of the two _fg_visible_left() says */
};

/* Takes its entry out: not FG_VISIBLE_NOT_ITS.  The section goes on. */
static inline enum fg_visible_leaves fg_visible_clear(struct fg_visible_line *line,
						      const void *lock)
{
	uint64_t *entry = &line->entry[fg_visible_column(lock)];

	/*
	 * Looked at once more below: no store before the atomic operation of one that is counted.
	 */
	if (fg_load_relaxed(entry) != (uintptr_t)lock || fg_unlikely(fg_at_table))
		return FG_VISIBLE_NOT_THERE;
	fg_at_table = FG_TABLE_LEAVES;
	fg_fence_local();
	if (fg_unlikely(fg_load_relaxed(entry) != (uintptr_t)lock)) {
		fg_at_table = 0;
		return FG_VISIBLE_NOT_THERE;
	}
	fg_store_release(entry, 0);
	/* The lock may be gone; the table stays. */
	fg_fence_light(); /* with _fg_visible_all_seen() */
	if (fg_unlikely(fg_load_relaxed(&line->notice)))
		return FG_VISIBLE_NOTICED; /* still at the table: a child that a handler forks is */
	fg_fence_local();
	fg_at_table = 0;
	return FG_VISIBLE_GONE;
}
enum fg_visible_leaves _fg_visible_left(struct fg_visible_line *line, const void *lock);

/* Both. */
enum fg_visible_leaves _fg_visible_leave(const struct fg_self *t, const void *lock);

/* Another thread unlocks for one that is visible. */
enum fg_visible_release {
	FG_VISIBLE_NOBODY, /* or it has moved to where one has looked, if several do so at once */
	FG_VISIBLE_BUSY,   /* one is there, of whose column another thread has yet to be done */
	FG_VISIBLE_RELEASED
};
enum fg_visible_release _fg_visible_release(const void *lock);

/*
 * How often an entry has been taken for released, which counts after all: its thread had left by
 * itself, and was back before _fg_visible_release() had seen that.  Who looks at all lines, and
 * finds another number afterwards, may have passed such a one.
 */
uint32_t _fg_visible_taken_back(void);

/*
 * What is left of a lock that was at this address, whose readers have ended without an unlock, does
 * not count.  Nobody reads a lock there by the table meanwhile.  False: it may, as another thread
 * has not finished with an entry.
 */
bool _fg_visible_forget(const void *lock);

/*
 * Whose entry is not seen after it has not passed its fg_fence_light(), and finds by its next look
 * what the calling thread has stored before.  `whose`: as for fg_call_begins().
 */
static inline void _fg_visible_all_seen(uint32_t whose)
{
	fg_fence_heavy(whose);
}

/* Lines that may be in use.  A thread with an index has been counted here before. */
uint32_t _fg_visible_lines(void);

/* In the child, which has no other threads: what these read is not read any more. */
void _fg_visible_after_fork(const struct fg_self *t);

#endif
