/* SPDX-License-Identifier: MIT */
/* Writers of the reader-writer lock (legend: rwlock.h): the gate, then the readers that are in. */
#include <errno.h>

#include "arch/arch.h"
#include "lock/rwlock_paths.h"
#include "runtime/count.h"
#include "sys/probe.h"

/* Waits until the entry of the line has not counted for a moment: 0 or ETIMEDOUT. */
static int wait_for_entry(struct fg_rwlock *rw, struct fg_self *t, uint32_t index,
			  const struct fg_deadline *deadline)
{
	struct fg_visible_line *line = &_fg_visible[index];
	struct fg_wait w = {.self = t, .owner = fg_load_relaxed(&fg_slot_look(index)->owner_id)};

	/* By a thread whose slot says nothing of it. */
	while (fg_visible_reads(line, rw) && !(deadline && fg_deadline_passed(deadline)) &&
	       fg_decide(&w) == FG_SPIN)
		fg_pause();
	for (;;) {
		/* Acquire: pairs with wake_wanting(). */
		uint32_t seen = fg_load_acquire(&line->gone);

		if (!fg_visible_reads(line, rw))
			return 0;
		fg_or_acq_rel(&line->notice, FG_NOTICE_WANTED);
		/*
		 * Dekker with fg_visible_clear(): it sees the notice, or we see that it has left.
		 */
#ifndef FG_BROKEN_WANTED /* a test proves that the tests notice */
		_fg_visible_all_seen(t->id);
#endif
		if (!fg_visible_reads(line, rw))
			return 0;
		fg_count(t, FG_STAT_PARKS, 1);
		if (fg_futex_wait(&line->gone, seen, FG_FUTEX_ANY, deadline) == -ETIMEDOUT)
			return ETIMEDOUT;
	}
}

/* Takes the bias back and waits for the visible readers. */
static int revoke_bias(struct fg_rwlock *rw, struct fg_self *t, const struct fg_deadline *deadline)
{
	uint64_t began = fg_now_ns();
	uint32_t line, lines,
	    bias = __atomic_exchange_n(&rw->bias, FG_RW_UNBIASED, __ATOMIC_SEQ_CST);

	/* Dekker with enter_visible() */
	if (bias != FG_RW_ASYMMETRIC) {
		fg_fence_after_rmw();
	} else {
		uint64_t since = fg_now_ns(), now;

		_fg_visible_all_seen(t->id);
		now = fg_now_ns();
		_fg_rwlock_bias_cost(now - since);
		began += now - since;
	}
#ifdef FG_BROKEN_RWLOCK /* a test proves that the tests notice */
	return 0;
#endif
	/* After that: a thread that came meanwhile and has seen the bias is among them. */
	lines = _fg_visible_lines();
	for (line = 0; line < lines; line++) {
		uint64_t since;
		int r;

		if (fg_likely(!fg_visible_reads(&_fg_visible[line], rw)))
			continue;
		since = fg_now_ns();
		r = wait_for_entry(rw, t, line, deadline);
		began += fg_now_ns() - since;
		if (r)
			return r;
	}
	_fg_rwlock_inhibit_bias(rw, fg_now_ns() - began, lines);
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

/* For _fg_rwlock_counted(). */
static void wrote(struct fg_rwlock *rw)
{
	uint32_t last = fg_load_relaxed(&rw->last_reader);

	if (last && !(last & FG_RW_WROTE))
		fg_store_relaxed(&rw->last_reader, last | FG_RW_WROTE);
}

/*
 * The slow way in.  Until WRITER_IN is set, readers may pass.  A reader that sets
 * the bias is counted meanwhile, so after get_in() no reader changes the bias.
 *
 * Visible readers that are left, or may be, are not looked for again unless the bias says so: when
 * the writer gives up, and when it has taken one for released that was not.
 */
static __attribute__((noinline)) int drain(struct fg_rwlock *rw, struct fg_self *t,
					   const struct fg_deadline *deadline)
{
	bool revoked = false, in;
	uint32_t before = 0;
	int r;

	set_tag(rw, t->id, COMES);
	do {
		/* Release: who passes sees what the last writer did (found by `fgsim --weak`). */
		fg_and_release(&rw->readers, ~WRITER_IN);
		r = 0;
		if (fg_load_relaxed(&rw->bias)) {
			revoked = true;
			before = _fg_visible_taken_back();
			r = revoke_bias(rw, t, deadline);
		}
		if (!r)
			r = wait_for_count(rw, t, deadline);
		in = !r && get_in(rw);
		if (revoked && (r || before != _fg_visible_taken_back()))
			_fg_rwlock_set_bias(rw);
	} while (!r && !(in && !fg_load_relaxed(&rw->bias)));
	if (!r) {
		set_tag(rw, t->id, WRITES);
		wrote(rw);
	}
	return r;
}

int _fg_rwlock_wrlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();
	bool at_once = _fg_lock_fast(&rw->gate);
	int r;

	if (!at_once) {
		if (i_am_at_gate(rw, t) != NO_WRITER)
			return EDEADLK;
		r = _fg_lock_slow(&rw->gate, deadline);
		if (r)
			return r;
	}
	set_tag(rw, t->id, WRITES);
	if (fg_likely(get_in(rw) && !fg_load_relaxed(&rw->bias))) {
		wrote(rw);
		return 0;
	}
	if (at_once) /* a writer that waited for the gate as well counts once */
		fg_count_contended(t);
	FG_PROBE1(contended, rw);
	r = drain(rw, t, deadline);
	FG_PROBE2(acquired, rw, r);
	if (r)
		writer_leaves(rw);
	return r;
}

void _fg_rwlock_destroy(struct fg_rwlock *rw)
{
	if (fg_load_relaxed(&rw->gate.word) & FG_WORD_ID)
		writer_leaves(rw);
}

/* Now, counted or in the table. */
static bool is_read(struct fg_rwlock *rw)
{
	uint32_t line, lines;

	if (fg_load_relaxed(&rw->readers) & COUNT)
		return true;
	if (!fg_load_relaxed(&rw->bias))
		return false;
	lines = _fg_visible_lines();
	for (line = 0; line < lines; line++)
		if (fg_visible_reads(&_fg_visible[line], rw))
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
	set_tag(rw, t->id, WRITES);
	if (!fg_load_relaxed(&rw->bias) && get_in(rw) && !fg_load_relaxed(&rw->bias)) {
		wrote(rw);
		return 0;
	}
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
