/* SPDX-License-Identifier: MIT */
/* Writers of the reader-writer lock (legend: rwlock.h): the gate, then the readers that are in. */
#include <errno.h>

#include "arch/arch.h"
#include "lock/rwlock_paths.h"
#include "runtime/count.h"
#include "sys/probe.h"

/*
 * Counted readers that pull the line from another one until the bias is set again: one for so many
 * ns that it took to take it back last time, about what they lose by it, and no more than so many
 * for each line of the table that was looked at, since the time may be that of a writer that was
 * off its CPU (2-CPU VM, Linux 6.18; docs/design/experiments.md, "The bias by what it costs").
 */
#define INHIBIT_NS	80u
#define INHIBIT_READERS 1u

/* Enough to spin on: nothing is concluded from half an address that stays. */
static const uint32_t *low_half(const uint64_t *entry)
{
	return (const uint32_t *)entry + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Waits until the entry has not named the lock for a moment: 0 or ETIMEDOUT. */
static int wait_for_entry(struct fg_rwlock *rw, struct fg_self *t, uint32_t line,
			  const struct fg_deadline *deadline)
{
	uint32_t *count = &_fg_rwlock_gone[line][column_of(rw)];
	uint64_t *entry = entry_in(line, rw);
	struct fg_wait w = {.self = t};

	/* The reader is known if the line has one thread. */
	if (line && fg_threads_highest() < LINES)
		w.owner = fg_load_relaxed(&fg_slot_look(line)->owner_id);
	if (fg_spin_while(&w, low_half(entry), ~WANTED, (uint32_t)entry_for(rw), deadline))
		return 0;
	for (;;) {
		/* Acquire, both: this one with wake_wanting(), the next with take_out(). */
		uint32_t seen = fg_load_acquire(count);
		uint64_t have = fg_load_acquire(entry);

		if (!names(have, rw))
			return 0;
		if (!(have & WANTED) && !fg_cas64_seq_cst(entry, &have, have | WANTED))
			continue;
		fg_count(t, FG_STAT_PARKS, 1);
		if (fg_futex_wait(count, seen, FG_FUTEX_ANY, deadline) == -ETIMEDOUT)
			return ETIMEDOUT;
	}
}

/* The bias has been taken back, in so long, waits not included. */
static void inhibit_bias(struct fg_rwlock *rw, uint64_t ns, uint32_t lines)
{
	uint64_t readers = ns / INHIBIT_NS, most = INHIBIT_READERS * lines;

	fg_store_relaxed(&rw->inhibit, (uint32_t)(readers < most ? readers : most));
}

/* Takes the bias back and waits for the visible readers. */
static int revoke_bias(struct fg_rwlock *rw, struct fg_self *t, const struct fg_deadline *deadline)
{
	uint64_t began = fg_now_ns();
	uint32_t line, lines;

	fg_store_relaxed(&rw->bias, 0);
	fg_fence_seq_cst(); /* Dekker with enter_visible() */
#ifdef FG_BROKEN_RWLOCK	    /* a test proves that the tests notice */
	return 0;
#endif
	/* After the fence: a thread that came meanwhile and has seen the bias is among them. */
	lines = lines_of_table();
	for (line = 0; line < lines; line++) {
		uint64_t since;
		int r;

		if (fg_likely(!names(fg_load_acquire(entry_in(line, rw)), rw)))
			continue;
		since = fg_now_ns();
		r = wait_for_entry(rw, t, line, deadline);
		began += fg_now_ns() - since;
		if (r) {
			/*
			 * Those that are left are not looked for again unless the bias says so.
			 * Release: as in set_bias_again().
			 */
			fg_store_release(&rw->bias, 1);
			return r;
		}
	}
	inhibit_bias(rw, fg_now_ns() - began, lines);
	return 0;
}

/* Waits until no reader is counted: 0 or ETIMEDOUT. */
static int wait_for_count(struct fg_rwlock *rw, struct fg_self *t,
			  const struct fg_deadline *deadline)
{
	/* for readers, who are many and not known, as for an owner */
	struct fg_wait w = {.self = t};
	bool may_spin = true;
	int r = 0;

	for (;;) {
		uint32_t have = fg_load_relaxed(&rw->readers);

		if (!(have & COUNT))
			break;
		if (may_spin && !(deadline && fg_deadline_passed(deadline)) &&
		    fg_decide(&w) == FG_SPIN) {
			fg_pause();
			continue;
		}
		may_spin = false;
		if (!(have & DRAINER_SLEEPS)) {
			if (!fg_cas_relaxed(&rw->readers, &have, have | DRAINER_SLEEPS))
				continue;
			have |= DRAINER_SLEEPS;
		}
		fg_count(t, FG_STAT_PARKS, 1);
		if (fg_futex_wait(&rw->readers, have, FG_FUTEX_ANY, deadline) == -ETIMEDOUT) {
			r = ETIMEDOUT;
			break;
		}
	}
	if (!may_spin)
		fg_and_relaxed(&rw->readers, ~DRAINER_SLEEPS);
	return r;
}

/* With no reader counted: none can be until this writer unlocks. */
static bool get_in(struct fg_rwlock *rw)
{
	uint32_t r = fg_load_relaxed(&rw->readers);

	while (!(r & COUNT))
		/*
		 * Acquire: pairs with leave_counted().  Release: a reader that is counted later
		 * sees a writer at the gate.
		 */
		if (fg_cas_acq_rel(&rw->readers, &r, r | WRITER_IN))
			return true;
	return false;
}

/*
 * The slow way in.  Until WRITER_IN is set, readers may pass.  A reader that sets
 * the bias is counted meanwhile, so after get_in() the bias does not change.
 */
static __attribute__((noinline)) int drain(struct fg_rwlock *rw, struct fg_self *t,
					   const struct fg_deadline *deadline)
{
	int r;

	do {
		fg_and_relaxed(&rw->readers, ~WRITER_IN);
		r = fg_load_relaxed(&rw->bias) ? revoke_bias(rw, t, deadline) : 0;
		if (!r)
			r = wait_for_count(rw, t, deadline);
	} while (!r && !(get_in(rw) && !fg_load_relaxed(&rw->bias)));
	return r;
}

int _fg_rwlock_wrlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();
	bool at_once = _fg_lock_fast(&rw->gate);
	int r;

	if (!at_once) {
		if (i_write(rw, t))
			return EDEADLK;
		r = _fg_lock_slow(&rw->gate, deadline);
		if (r)
			return r;
	}
	fg_store_relaxed(&rw->gate.tag, 1);
	if (fg_likely(get_in(rw) && !fg_load_relaxed(&rw->bias)))
		return 0;
	if (at_once) /* a writer that waited for the gate as well counts once */
		fg_count_contended(t);
	FG_PROBE1(contended, rw);
	r = drain(rw, t, deadline);
	FG_PROBE2(acquired, rw, r);
	if (r)
		writer_leaves(rw);
	return r;
}

/* Now, counted or in the table. */
static bool is_read(struct fg_rwlock *rw)
{
	uint32_t line, lines;

	if (fg_load_relaxed(&rw->readers) & COUNT)
		return true;
	if (!fg_load_relaxed(&rw->bias))
		return false;
	lines = lines_of_table();
	for (line = 0; line < lines; line++)
		if (names(fg_load_relaxed(entry_in(line, rw)), rw))
			return true;
	return false;
}

/* A try that is in vain because others read leaves no mark: theirs would be in vain as well. */
int _fg_rwlock_trywrlock(struct fg_rwlock *rw)
{
	static const struct fg_deadline past = {.clock = CLOCK_MONOTONIC};
	struct fg_self *t = fg_self();

	if (is_read(rw) || !_fg_trylock(&rw->gate))
		return EBUSY;
	fg_store_relaxed(&rw->gate.tag, 1);
	if (!fg_load_relaxed(&rw->bias) && get_in(rw) && !fg_load_relaxed(&rw->bias))
		return 0;
	if (!drain(rw, t, &past))
		return 0;
	writer_leaves(rw);
	return EBUSY;
}

__attribute__((noinline, cold)) int _fg_rwlock_wrlock_traced(struct fg_rwlock *rw,
							     const struct fg_deadline *deadline,
							     const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_rwlock_wrlock_untraced(rw, deadline);

	fg_trace_ends(&t, rw, caller);
	return r;
}
