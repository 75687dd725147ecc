/* SPDX-License-Identifier: MIT */
/*
 * Who gets the bias of a reader-writer lock, and when (legend: rwlock.h; docs/design/rwlock.md).
 * The table saves an atomic operation, and what it costs to pull the line of the count from another
 * reader; to take the bias back costs a writer more. So the bias is set once readers have lost as
 * much as that took the last writer, nearly BRAVO's time for which it is inhibited; more, where one
 * thread reads and is written in between. A lock that is not written for long after that gets on
 * without a barrier.
 */
#include "lock/rwlock_paths.h"

/*
 * What a counted reader loses, and one that pulls the line of the count from another (2-CPU VM,
 * Linux 6.18; docs/design/experiments.md, "The bias by what it costs").  The first is a few ns on
 * some CPUs and nothing on others.  Where one thread reads and others do not, little goes into the
 * bias: writers that come between two of its reads take the third from that, until as much is to be
 * lost as at first.
 */
#define COUNTED_NS 2u
#define PULLED_NS  80u
#define WRITTEN_NS 32u

/* No lock is inhibited for longer. */
#define INHIBIT_MOST_NS (PULLED_NS * FG_VISIBLE_LINES + FG_RW_FIRST_NS)

/*
 * `inhibit` is what readers still lose, and no time since when the bias has been seen.  There is
 * none yet, or a counted reader has stored this after another one had set the bias: it was taken
 * for a time long ago, and the next writer called all CPUs then.
 */
static bool is_left(uint32_t inhibit)
{
	return inhibit + FG_RW_FIRST_NS <= INHIBIT_MOST_NS;
}

/* A time, in us, is told from what is left by this bit (but for 0.4 ms in half an hour). */
#define TIME_BIT 0x80000000u

static uint32_t time_now(void)
{
	return (uint32_t)(fg_now_ns() / 1000) | TIME_BIT;
}

/*
 * A lock that has not been written for so many times what the barrier for all threads takes is one
 * for which its next writer makes it: a thirtieth of the time at most.  That took 2 to 5 us on 2
 * CPUs; more where a writer was off its CPU.
 */
#define HEAVY_TIMES   32u
#define HEAVY_MOST_NS 200000u

static uint32_t heavy_us = 5; /* what it took last */

void _fg_rwlock_bias_cost(uint64_t ns)
{
	fg_store_relaxed(&heavy_us, 1 + (uint32_t)(ns < HEAVY_MOST_NS ? ns : HEAVY_MOST_NS) / 1000);
}

int _fg_rwlock_read_for_long(struct fg_rwlock *rw)
{
	uint32_t bias = FG_RW_BIASED, since = fg_load_relaxed(&rw->inhibit);

	if (fg_load_relaxed(&fg_asymmetric) != FG_ASYMMETRIC)
		return 0;
	/* The first begins to count: who sets the bias need not look at the clock. */
	if (is_left(since))
		fg_store_relaxed(&rw->inhibit, time_now());
	else if (((time_now() - since) & ~TIME_BIT) >= HEAVY_TIMES * fg_load_relaxed(&heavy_us))
		/* Release: as in _fg_rwlock_set_bias(). */
		fg_cas_acq_rel(&rw->bias, &bias, FG_RW_ASYMMETRIC);
	return 0;
}

/*
 * Not over one that others have set, and read for long, meanwhile: its writer owes a barrier to all
 * (found by the model).
 */
void _fg_rwlock_set_bias(struct fg_rwlock *rw)
{
	uint32_t bias = FG_RW_UNBIASED;

	fg_store_relaxed(&rw->inhibit, 0);
	/* Release: visible readers see what we have seen of the last writer. */
	fg_cas_release(&rw->bias, &bias, FG_RW_BIASED);
}

/* False: another thread is at it. */
static bool see_to_table(struct fg_rwlock *rw)
{
	uint32_t table = FG_RW_TABLE_OLD;

	if (fg_likely(fg_load_acquire(&rw->table) == FG_RW_TABLE_OWN))
		return true;
	if (!fg_cas_acquire(&rw->table, &table, FG_RW_TABLE_SEEN_TO))
		return table == FG_RW_TABLE_OWN;
	if (!_fg_visible_forget(rw)) {
		fg_store_release(&rw->table, FG_RW_TABLE_OLD); /* a later reader sees to it */
		return false;
	}
	fg_store_release(&rw->table, FG_RW_TABLE_OWN);
	return true;
}

/* Counted until we leave, so no writer gets past drain() without seeing this. */
static __attribute__((noinline)) int have_bias(struct fg_rwlock *rw)
{
	if (see_to_table(rw))
		_fg_rwlock_set_bias(rw);
	else
		fg_store_relaxed(&rw->inhibit, 0); /* as at first, not at each read */
	return 0;
}

/*
 * Of a thread that reads and is written in between, by itself most likely; not without end, since
 * that may be over, as where a table has been filled.
 */
static __attribute__((noinline)) int read_after_write(struct fg_rwlock *rw)
{
	uint32_t left = fg_load_relaxed(&rw->inhibit) + FG_RW_FIRST_NS;

	if (left + WRITTEN_NS <= FG_RW_FIRST_NS)
		fg_store_relaxed(&rw->inhibit, left + WRITTEN_NS - FG_RW_FIRST_NS);
	return 0;
}

int _fg_rwlock_counted(struct fg_rwlock *rw, const struct fg_self *t)
{
	uint32_t last = fg_load_relaxed(&rw->last_reader), lost = COUNTED_NS;
	uint32_t left;

	if (fg_load_relaxed(&rw->bias))
		return 0;
	if (last != t->id) {
		fg_store_relaxed(&rw->last_reader, t->id);
		if (last == (t->id | FG_RW_WROTE))
			return read_after_write(rw);
		lost = PULLED_NS;
	}
	left = fg_load_relaxed(&rw->inhibit) + FG_RW_FIRST_NS;
	/* More is a time that a late _fg_rwlock_read_for_long() has left there. */
	if (fg_unlikely(left <= lost || left > INHIBIT_MOST_NS))
		return have_bias(rw);
	fg_store_relaxed(&rw->inhibit, left - lost - FG_RW_FIRST_NS);
	return 0;
}

/* No more than one for each line, since the time may be that of a writer that was off its CPU. */
void _fg_rwlock_inhibit_bias(struct fg_rwlock *rw, uint64_t ns, uint32_t lines)
{
	uint32_t most = lines * PULLED_NS;

	fg_store_relaxed(&rw->inhibit, (ns < most ? (uint32_t)ns : most) - FG_RW_FIRST_NS);
}
