/* SPDX-License-Identifier: MIT */
#include "lock/visible.h"

#include "sys/futex.h"

struct fg_visible_line _fg_visible[FG_VISIBLE_LINES];
__thread uint8_t fg_at_table;

uint32_t _fg_visible_lines(void)
{
	uint32_t lines = fg_threads_highest() + 1; /* also of a parent's threads */

	return lines < FG_VISIBLE_LINES ? lines : FG_VISIBLE_LINES;
}

static void wake_wanting(struct fg_visible_line *line)
{
	fg_and_relaxed(&line->notice, ~(uint32_t)FG_NOTICE_WANTED);
	/* Release: with the new count the entry is seen gone (acquire in wait_for_entry). */
	fg_add_release(&line->gone, 1);
	fg_futex_wake(&line->gone, INT32_MAX, FG_FUTEX_ANY); /* of several locks, perhaps */
#ifdef FG_BROKEN_LINE /* a test proves that the tests notice who is forgotten */
	fg_and_relaxed(&line->notice, ~(uint32_t)FG_NOTICE_WANTED);
#endif
}

enum fg_visible_leaves _fg_visible_left(struct fg_visible_line *line, const void *lock)
{
	uint64_t address = (uintptr_t)lock;
	uint64_t *released = &line->released[fg_visible_column(lock)];
	uint32_t notice = fg_load_relaxed(&line->notice);
	bool counted = true;

	if (notice & FG_NOTICE_RELEASED)
		/* Acquire: what follows comes after what the other thread has done. */
		counted = fg_load_relaxed(released) != address ||
			  !fg_cas64_acq_rel(released, &address, 0);
	fg_fence_local();
	fg_at_table = 0;
	if (notice & FG_NOTICE_WANTED)
		wake_wanting(line);
	return counted ? FG_VISIBLE_GONE : FG_VISIBLE_NOT_ITS;
}

enum fg_visible_leaves _fg_visible_leave(const struct fg_self *t, const void *lock)
{
	struct fg_visible_line *line = fg_visible_mine(t);
	enum fg_visible_leaves leaves;

	if (!line)
		return FG_VISIBLE_NOT_THERE;
	leaves = fg_visible_clear(line, lock);
	return leaves == FG_VISIBLE_NOTICED ? _fg_visible_left(line, lock) : leaves;
}

static uint32_t taken_back;

/* Acquire: an entry that it counts is seen to count. */
uint32_t _fg_visible_taken_back(void)
{
	return fg_load_acquire(&taken_back);
}

/* The entry does not count any more, as it seems.  False: another thread is at this column. */
static bool discount(struct fg_visible_line *line, const void *lock)
{
	uint64_t none = 0;

	if (!fg_cas64_acq_rel(&line->released[fg_visible_column(lock)], &none, (uintptr_t)lock))
		return false;
	fg_or_acq_rel(&line->notice, FG_NOTICE_RELEASED);
	return true;
}

static enum fg_visible_release release_in(struct fg_visible_line *line, const void *lock)
{
	uint64_t address = (uintptr_t)lock;
	uint32_t column = fg_visible_column(lock);

	if (!fg_visible_reads(line, lock))
		return FG_VISIBLE_NOBODY;
	if (!discount(line, lock))
		return FG_VISIBLE_BUSY;
	/*
	 * Dekker with fg_visible_clear(): its thread, which may be about to clear it, sees the
	 * notice, or we see that it has.
	 */
	_fg_visible_all_seen(column);
	/*
	 * Acquire: a writer may have taken the entry for released, and gone on to the one that we
	 * release in its place, from which it has what its reader did (found by `fgsim --weak`).
	 */
	if (fg_load_acquire(&line->entry[column]) == address) {
		if (fg_load_relaxed(&line->notice) & FG_NOTICE_WANTED)
			wake_wanting(line);
		return FG_VISIBLE_RELEASED;
	}
	/* Taken back; if it is not there, its thread has found it, and leaves in our place. */
	if (!fg_cas64_acq_rel(&line->released[column], &address, 0))
		return FG_VISIBLE_RELEASED;
	/*
	 * Release: before the place goes that a writer still finds.  It has passed this line,
	 * perhaps, whose thread reads again (drain).
	 */
	fg_add_release(&taken_back, 1);
	return FG_VISIBLE_NOBODY;
}

enum fg_visible_release _fg_visible_release(const void *lock)
{
	enum fg_visible_release all = FG_VISIBLE_NOBODY;

	for (uint32_t i = 0, lines = _fg_visible_lines(); i < lines; i++) {
		enum fg_visible_release r = release_in(&_fg_visible[i], lock);

		if (r == FG_VISIBLE_RELEASED)
			return r;
		if (r == FG_VISIBLE_BUSY)
			all = r;
	}
	return all;
}

/*
 * Looks until another thread's release of another lock is taken back: a moment, unless that one is
 * off its CPU, or below a signal handler of this thread.  Not varied.
 */
#define FORGET_LOOKS 200u

bool _fg_visible_forget(const void *lock)
{
	uint32_t looks = 0;

	for (uint32_t i = 0, lines = _fg_visible_lines(); i < lines; i++) {
		struct fg_visible_line *line = &_fg_visible[i];

		while (fg_unlikely(fg_visible_reads(line, lock)) && !discount(line, lock)) {
			if (++looks == FORGET_LOOKS)
				return false;
			fg_pause();
		}
	}
	return true;
}

/* Of another thread. */
static void empty(struct fg_visible_line *line, uint32_t column)
{
	if (line->entry[column]) { /* a child need not have the pages */
		line->entry[column] = 0;
		/* For a writer that sleeps: a handler of its has forked, and the call goes on. */
		line->gone++;
	}
	if (line->released[column])
		line->released[column] = 0;
}

/*
 * What another thread has yet to take back it does not, here.
 *
 * The calling thread may be in the middle of an unlock, which a signal handler has interrupted, and
 * has cleared this entry.  Then it may look for itself in `released`, or have looked, and not
 * again.  So that stays there, and as it may stay for good no entry comes beside it.
 */
static void settle(struct fg_visible_line *line, uint32_t column)
{
	uint64_t entry = line->entry[column], released = line->released[column];

	if (!released)
		return;
	if (released == entry)
		line->notice |=
		    FG_NOTICE_RELEASED; /* who has released it may not have got so far */
	/* Closed by an earlier fork under the same unlock: as that left it. */
	else if ((entry && entry != FG_VISIBLE_CLOSED) || fg_at_table != FG_TABLE_LEAVES)
		line->released[column] = 0;
	else
		line->entry[column] = FG_VISIBLE_CLOSED;
}

void _fg_visible_after_fork(const struct fg_self *t)
{
	const struct fg_visible_line *mine = fg_visible_mine(t);

	for (uint32_t i = 0, lines = _fg_visible_lines(); i < lines; i++)
		for (uint32_t column = 0; column < FG_VISIBLE_COLUMNS; column++) {
			if (&_fg_visible[i] != mine)
				empty(&_fg_visible[i], column);
			else
				settle(&_fg_visible[i], column);
		}
}
