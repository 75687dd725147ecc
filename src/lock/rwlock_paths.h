/* SPDX-License-Identifier: MIT */
/*
 * What readers (rwlock.c) and writers (rwlock_write.c) share: the flags of `readers`, legend in
 * rwlock.h, and the table of visible readers.
 */
#ifndef FG_RWLOCK_PATHS_H
#define FG_RWLOCK_PATHS_H

#include "lock/rwlock.h"

#define COUNT 0x0fffffffu
/* The rest is for those that are counted until they find that there are too many: all threads. */
#define READERS_MAX    0x0f800000u
#define DRAINER_SLEEPS 0x40000000u
#define WRITER_IN      0x80000000u

/*
 * A line of its own for each of the first LINES threads; later ones share them.  An
 * entry holds the address of the lock that is read there, with WANTED if its
 * writer sleeps until it goes.  A child of fork() inherits the table, as POSIX has
 * it for locks that threads of the parent hold.
 *
 * An entry does not say who reads.  Of the threads that share one and read the same
 * lock, one has it and the others are counted; whoever leaves first takes it
 * out, and one that finds it gone counts itself out (docs/design/rwlock.md).  Sizes: not varied.
 */
#ifndef FG_RWLOCK_LINES /* fewer in the simulator, for its few threads to share */
#define FG_RWLOCK_LINES 128
#endif
#define LINES	FG_RWLOCK_LINES
#define ENTRIES 8
#define WANTED	1u

struct fg_rwlock_line {
	uint64_t entry[ENTRIES];
} __attribute__((aligned(FG_CACHE_LINE)));
extern struct fg_rwlock_line _fg_rwlock_visible[LINES] __attribute__((visibility("hidden")));

/*
 * What writers sleep on, for each entry: counts those that were WANTED and have gone.
 * Not the entry itself: a futex sees half of it, and the same half may be
 * that of another lock, whose writer sleeps there too.
 */
extern uint32_t _fg_rwlock_gone[LINES][ENTRIES] __attribute__((visibility("hidden")));

/* What names this lock in the table. */
static inline uint64_t entry_for(const struct fg_rwlock *rw)
{
	return (uint64_t)(uintptr_t)rw;
}

static inline uint32_t column_of(const struct fg_rwlock *rw)
{
	uint64_t a = entry_for(rw);

	return (a >> 3 ^ a >> 6 ^ a >> 12) % ENTRIES;
}

static inline uint64_t *entry_in(uint32_t line, const struct fg_rwlock *rw)
{
	return &_fg_rwlock_visible[line].entry[column_of(rw)];
}

static inline uint32_t line_of(const struct fg_self *t)
{
	return fg_id_index(t->id) % LINES;
}

/* Lines that may be in use.  A thread with an index has been counted here before. */
static inline uint32_t lines_of_table(void)
{
	uint32_t lines = fg_threads_highest() + 1;

	return lines < LINES ? lines : LINES;
}

static inline bool names(uint64_t entry, const struct fg_rwlock *rw)
{
	return (entry & ~(uint64_t)WANTED) == entry_for(rw);
}

/* The calling thread has the gate as a writer. */
static inline bool i_write(struct fg_rwlock *rw, const struct fg_self *t)
{
	uint32_t owner = fg_load_relaxed(&rw->gate.word) & FG_WORD_ID;

	if (fg_unlikely(owner && owner == fg_former_id(t))) {
		_fg_lock_adopt(&rw->gate, owner);
		owner = t->id;
	}
	return owner == t->id && fg_load_relaxed(&rw->gate.tag);
}

/*
 * Not the reader that gets the gate next clears the tag: another one, whose time is over, would
 * take that one for a writer, and give up.  Release: as in rdlock_contended().  False: it has the
 * gate still, and has to release it the long way.
 */
static inline bool writer_leaves_fast(struct fg_rwlock *rw)
{
#ifndef FG_BROKEN_OLD_TAG /* a test proves that the tests notice */
	fg_store_release(&rw->gate.tag, 0);
#endif
	return _fg_unlock_fast(&rw->gate);
}

static inline void writer_leaves(struct fg_rwlock *rw)
{
	if (fg_unlikely(!writer_leaves_fast(rw)))
		_fg_unlock_slow(&rw->gate);
}

#endif
