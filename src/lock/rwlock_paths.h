/* SPDX-License-Identifier: MIT */
/*
 * What readers (rwlock.c) and writers (rwlock_write.c) share beside the table of visible readers
 * (visible.h): the flags of `readers`, legend in rwlock.h.
 */
#ifndef FG_RWLOCK_PATHS_H
#define FG_RWLOCK_PATHS_H

#include "lock/rwlock.h"
#include "lock/visible.h"

#define COUNT 0x0fffffffu
/* The rest is for those that are counted until they find that there are too many: all threads. */
#define READERS_MAX    0x0f800000u
#define DRAINER_SLEEPS 0x40000000u
#define WRITER_IN      0x80000000u

/* Acquire: what the table had of a lock before it has been seen to (see_to_table). */
static inline bool has_table(const struct fg_rwlock *rw)
{
	return fg_load_acquire(&rw->table) == FG_RW_TABLE_OWN;
}

/* Who gets the bias, and when: rwlock_bias.c.  A reader has been counted, no writer about.  0. */
int _fg_rwlock_counted(struct fg_rwlock *rw, const struct fg_self *t);
/* By a counted reader, or the owner of the gate. */
void _fg_rwlock_set_bias(struct fg_rwlock *rw);
/* By some of the readers that have the barrier: it may be that their lock can do without.  0. */
int _fg_rwlock_read_for_long(struct fg_rwlock *rw);
/* What a barrier for all threads has taken. */
void _fg_rwlock_bias_cost(uint64_t ns);
/*
 * The bias has been taken back in so long, waits and the barrier for all not included, with a look
 * at so many lines.
 */
void _fg_rwlock_inhibit_bias(struct fg_rwlock *rw, uint64_t ns, uint32_t lines);

/*
 * gate.tag: the id of a writer, and what it is.  One that waits for readers comes (drain); one that
 * does not says at once that it writes, and does so unless there is a bias.  Of another owner of
 * the gate the tag says nothing, so a writer leaves it behind: to clear it would let readers in,
 * the last of which may free the lock, before the writer has released the gate.  Nor does the next
 * reader at the gate look like a writer by it: it came for another one.  Without an id it is that
 * of the owner, whose id changes.
 */
enum at_gate { NO_WRITER, WRITES, COMES };
#define TAG_STATE 28
_Static_assert(FG_WORD_ID >> TAG_STATE == 0, "above the id");

static inline enum at_gate tag_says(uint32_t tag, uint32_t owner)
{
	uint32_t id = tag & FG_WORD_ID;

#ifdef FG_BROKEN_OLD_TAG /* a test proves that the tests notice */
	id = 0;
#endif
	return id && id != owner ? NO_WRITER : (enum at_gate)(tag >> TAG_STATE);
}

static inline uint32_t tag_of(uint32_t id, enum at_gate is)
{
	return id | (uint32_t)is << TAG_STATE;
}

/* By the owner of the gate.  Release: see writer_at_gate(). */
static inline void set_tag(struct fg_rwlock *rw, uint32_t id, enum at_gate is)
{
	fg_store_release(&rw->gate.tag, tag_of(id, is));
}

static inline bool writer_is_sure(const struct fg_rwlock *rw, uint32_t owner)
{
	return fg_load_relaxed(&rw->gate.tag) == tag_of(owner, WRITES) &&
	       !fg_load_relaxed(&rw->bias);
}

/* From now on by its new id. */
static inline void adopt_gate(struct fg_rwlock *rw, const struct fg_self *t, uint32_t former)
{
	enum at_gate is = tag_says(fg_load_relaxed(&rw->gate.tag), former);

	set_tag(rw, 0, is);
	_fg_lock_adopt(&rw->gate, former);
	set_tag(rw, is == NO_WRITER ? 0 : t->id, is);
}

/*
 * The calling thread.  While it comes a signal handler of its may be one of the readers, and what
 * that unlocks is what it has read.
 */
static inline enum at_gate i_am_at_gate(struct fg_rwlock *rw, const struct fg_self *t)
{
	uint32_t owner = fg_load_relaxed(&rw->gate.word) & FG_WORD_ID;

	if (fg_unlikely(owner && owner == fg_former_id(t))) {
		adopt_gate(rw, t, owner);
		owner = t->id;
	}
	if (owner != t->id || tag_says(fg_load_relaxed(&rw->gate.tag), owner) == NO_WRITER)
		return NO_WRITER;
	return writer_is_sure(rw, owner) ? WRITES : COMES;
}

/* The last access.  False: it has the gate still, and has to release it the long way. */
static inline bool writer_leaves_fast(struct fg_rwlock *rw)
{
#ifdef FG_BROKEN_LAST_ACCESS /* a test proves that the tests notice */
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
