/* SPDX-License-Identifier: MIT */
#include "lock/rwlock.h"

#include <errno.h>

#include "arch/arch.h"
#include "runtime/count.h"

#define COUNT	       0x0fffffffu
#define DRAINER_SLEEPS 0x40000000u
#define WRITER_IN      0x80000000u

/*
 * Counted readers after the last writer before the bias is set again, for each line
 * of the table that the next writer will look at: their cost together is several
 * times that of taking the bias back (2-CPU VM, Linux 6.18; docs/design/experiments.md,
 * "The bias comes back sooner").
 */
#define INHIBIT_READERS 4u

/*
 * How long a reader waits for a writer before it looks whether it may pass, when it holds a read
 * lock already.  Not varied.
 */
#define RECURSIVE_NS 50000u

/* ---- the table of visible readers ------------------------------------------ */

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
#define LINES	128
#define ENTRIES 8
#define WANTED	1u

static struct {
	uint64_t entry[ENTRIES];
} __attribute__((aligned(FG_CACHE_LINE))) visible[LINES];

/*
 * What writers sleep on, for each entry: counts those that were WANTED and have gone.
 * Not the entry itself: a futex sees half of it, and the same half may be
 * that of another lock, whose writer sleeps there too.
 */
static uint32_t gone[LINES][ENTRIES];

static uint64_t address(const struct fg_rwlock *rw)
{
	return (uint64_t)(uintptr_t)rw;
}

static uint32_t column_of(const struct fg_rwlock *rw)
{
	uint64_t a = address(rw);

	return (a >> 3 ^ a >> 6 ^ a >> 12) % ENTRIES;
}

static uint64_t *entry_in(uint32_t line, const struct fg_rwlock *rw)
{
	return &visible[line].entry[column_of(rw)];
}

static uint32_t line_of(const struct fg_self *t)
{
	return fg_id_index(t->id) % LINES;
}

/* Lines that may be in use.  A thread with an index has been counted here before. */
static uint32_t lines_of_table(void)
{
	uint32_t lines = fg_threads_highest() + 1;

	return lines < LINES ? lines : LINES;
}

static bool names(uint64_t entry, const struct fg_rwlock *rw)
{
	return (entry & ~(uint64_t)WANTED) == address(rw);
}

static __attribute__((noinline, cold)) void wake_wanting(uint32_t *count)
{
	/* Release: with the new count the entry is seen gone (acquire in wait_for_entry). */
	fg_add_release(count, 1);
	fg_futex_wake(count, INT32_MAX, FG_FUTEX_ANY); /* writers of two locks may sleep there */
}

static bool clear(uint64_t *entry, uint64_t *have)
{
#ifdef FG_BROKEN_RWLOCK_TABLE /* a test proves that the tests notice */
	*have = __atomic_exchange_n(entry, 0, __ATOMIC_RELEASE);
	return true;
#endif
	/* Release: pairs with the acquire in wait_for_entry(). */
	return fg_likely(fg_cas64_release(entry, have, 0));
}

/*
 * True if the entry named this lock and does not any more.  The lock may be gone then; the table
 * stays.
 */
static bool take_out(uint32_t line, const struct fg_rwlock *rw)
{
	uint32_t column = column_of(rw);
	uint64_t *entry = &visible[line].entry[column], have = fg_load_relaxed(entry);

	if (fg_likely(have == address(rw)) && clear(entry, &have))
		/* nobody wants it: the usual case of the loop below, with less to test */
		return true;
	while (names(have, rw))
		if (clear(entry, &have)) {
			if (have & WANTED)
				wake_wanting(&gone[line][column]);
			return true;
		}
	return false;
}

/* True if this thread reads now. */
static bool enter_visible(struct fg_rwlock *rw, struct fg_self *t)
{
	uint64_t none = 0, *entry;

	if (!fg_load_relaxed(&rw->bias) || !fg_id_has_slot(t->id))
		return false;
	entry = entry_in(line_of(t), rw);
	if (fg_load_relaxed(entry) || !fg_cas64_seq_cst(entry, &none, address(rw)))
		return false; /* read by this thread already, or a neighbour's */
	/*
	 * Dekker with revoke_bias(): it clears the bias and then looks here.  Acquire:
	 * the reader that set the bias had seen what the last writer did.
	 */
	if (fg_likely(fg_load_seq_cst(&rw->bias)))
		return true;
	if (take_out(line_of(t), rw))
		return false;
	/*
	 * A neighbour has left with our entry, and left its place in the count, which keeps the
	 * writers out, to us.
	 */
	/* pairs with its release in take_out(): we see what it saw of the last writer */
	fg_fence_acquire();
	return true;
}

/*
 * An entry of another thread: one that lets others unlock for it, or one that the parent of this
 * process had.
 */
static bool take_out_any(const struct fg_rwlock *rw)
{
	uint32_t line;

	for (line = 0; line < LINES; line++)
		if (take_out(line, rw))
			return true;
	return false;
}

/* ---- counted readers -------------------------------------------------------- */

/* False if there is none.  After it, the lock may be gone. */
static bool leave_counted(struct fg_rwlock *rw)
{
	uint32_t r = fg_load_relaxed(&rw->readers);

	while (r & COUNT) {
		/* Release: pairs with the writer's CAS in drain(). */
		if (!fg_cas_release(&rw->readers, &r, r - 1))
			continue;
		if (fg_unlikely((r & (COUNT | DRAINER_SLEEPS)) == (1 | DRAINER_SLEEPS)))
			fg_futex_wake(&rw->readers, 1, FG_FUTEX_ANY);
		return true;
	}
	return false;
}

/*
 * A thread that has locked for itself is found in the count at once.  Those that unlock for
 * others look several times: if two of them unlock at once, a reader may move to where one has
 * looked.  Not varied.
 */
#define ENTRY_LOOKS 8

static void leave(struct fg_rwlock *rw)
{
	uint32_t looks;

	for (looks = 0; looks < ENTRY_LOOKS; looks++)
		if (leave_counted(rw) || take_out_any(rw))
			return;
}

/* Acquire: a reader that finds the gate free sees what the last writer did. */
static bool writer_at_gate(struct fg_rwlock *rw)
{
	return (fg_load_acquire(&rw->gate.word) & FG_WORD_ID) && fg_load_relaxed(&rw->gate.tag);
}

static bool i_write(struct fg_rwlock *rw, const struct fg_self *t)
{
	uint32_t owner = fg_load_relaxed(&rw->gate.word) & FG_WORD_ID;

	if (fg_unlikely(owner && owner == fg_former_id(t))) {
		_fg_lock_adopt(&rw->gate, owner);
		owner = t->id;
	}
	return owner == t->id && fg_load_relaxed(&rw->gate.tag);
}

/* A counted reader, no writer about.  BRAVO inhibits the bias for a time, here for readers. */
static void set_bias_again(struct fg_rwlock *rw)
{
	uint32_t left = fg_load_relaxed(&rw->inhibit);

	if (fg_likely(left))
		fg_store_relaxed(&rw->inhibit, left - 1);
	else if (!fg_load_relaxed(&rw->bias))
		/*
		 * Counted until we leave, so no writer gets past drain() without seeing
		 * this.  Release: visible readers see what we have seen of the last writer.
		 */
		fg_store_release(&rw->bias, 1);
}

/*
 * 0, EBUSY or EAGAIN.  The order of all changes of `readers` decides against a writer: a
 * reader that is counted before its CAS keeps it waiting, one that is counted after sees all
 * that it did to the gate.
 */
static int enter_counted(struct fg_rwlock *rw, bool may_pass)
{
	uint32_t r = fg_add_acq_rel(&rw->readers, 1);

	if (fg_likely(!writer_at_gate(rw))) {
		if (fg_unlikely((r & COUNT) == COUNT - 1)) {
			leave(rw);
			return EAGAIN;
		}
		set_bias_again(rw);
		return 0;
	}
	if (may_pass && !(r & WRITER_IN))
		return 0;
	leave(rw);
	return EBUSY;
}

/* ---- reading ------------------------------------------------------------------ */

static int gate_lock(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	if (_fg_lock_fast(&rw->gate))
		return 0;
	return _fg_lock_slow(&rw->gate, deadline);
}

/* The earlier of the two. */
static const struct fg_deadline *no_later(struct fg_deadline *soon, uint64_t ns,
					  const struct fg_deadline *deadline)
{
	if (fg_deadline_left(deadline) <= ns)
		return deadline;
	fg_deadline_in(soon, ns);
	soon->internal = true;
	return soon;
}

/* A writer is about: waits in its queue. */
static __attribute__((noinline)) int rdlock_contended(struct fg_rwlock *rw, struct fg_self *t,
						      const struct fg_deadline *deadline)
{
	bool writers_first = rw->kind == FG_RW_WRITERS_FIRST;
	int r;

	if (i_write(rw, t))
		return EDEADLK;
	for (;;) {
		bool recursive = fg_sections != 0, late;
		struct fg_deadline soon;

		r = gate_lock(rw, writers_first ?
				      deadline :
				      no_later(&soon, recursive ? RECURSIVE_NS : FG_RW_PATIENCE_NS,
					       deadline));
		if (!r) {
			/* No writer now, and none until we are counted. */
			fg_store_relaxed(&rw->gate.tag, 0);
			r = enter_counted(rw, true);
			_fg_unlock(&rw->gate);
			return r;
		}
		late = deadline && fg_deadline_passed(deadline);
		/*
		 * A signal handler may have taken all the time: what can be had at once is had,
		 * late or not.
		 */
		r = enter_counted(rw, !writers_first);
		if (r != EBUSY || late)
			return r == EBUSY ? ETIMEDOUT : r;
	}
}

int _fg_rwlock_rdlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();
	int r;

	if (enter_visible(rw, t)) {
		fg_section_enter(t);
		return 0;
	}
	if (fg_unlikely(writer_at_gate(rw)) && !fg_sections)
		r = EBUSY; /* most likely; without a write to the line that the writer needs */
	else
		r = enter_counted(rw, fg_sections && rw->kind != FG_RW_WRITERS_FIRST);
	if (fg_unlikely(r == EBUSY))
		r = rdlock_contended(rw, t, deadline);
	if (fg_likely(!r))
		fg_section_enter(t);
	return r;
}

int _fg_rwlock_tryrdlock(struct fg_rwlock *rw)
{
	struct fg_self *t = fg_self();
	int r = enter_visible(rw, t) ? 0 : enter_counted(rw, rw->kind != FG_RW_WRITERS_FIRST);

	if (!r)
		fg_section_enter(t);
	return r;
}

/* ---- writing ------------------------------------------------------------------- */

/* Enough to spin on: nothing is concluded from half an address that stays. */
static const uint32_t *low_half(const uint64_t *entry)
{
	return (const uint32_t *)entry + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Waits until the entry has not named the lock for a moment: 0 or ETIMEDOUT. */
static int wait_for_entry(struct fg_rwlock *rw, struct fg_self *t, uint32_t line,
			  const struct fg_deadline *deadline)
{
	uint32_t *count = &gone[line][column_of(rw)];
	uint64_t *entry = entry_in(line, rw);
	struct fg_wait w = {.self = t};

	/* Whose it is, if the line has one thread. */
	if (line && fg_threads_highest() < LINES)
		w.owner = fg_load_relaxed(&fg_slot_look(line)->owner_id);
	if (fg_spin_while(&w, low_half(entry), ~WANTED, (uint32_t)address(rw), deadline))
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

/* Takes the bias back and waits for the visible readers. */
static int revoke_bias(struct fg_rwlock *rw, struct fg_self *t, const struct fg_deadline *deadline)
{
	uint32_t line, lines;

	fg_store_relaxed(&rw->bias, 0);
	fg_fence_seq_cst(); /* Dekker with enter_visible() */
#ifdef FG_BROKEN_RWLOCK	    /* a test proves that the tests notice */
	return 0;
#endif
	/* After the fence: a thread that came meanwhile and has seen the bias is among them. */
	lines = lines_of_table();
	for (line = 0; line < lines; line++) {
		int r;

		if (fg_likely(!names(fg_load_acquire(entry_in(line, rw)), rw)))
			continue;
		r = wait_for_entry(rw, t, line, deadline);
		if (r) {
			/*
			 * Those that are left are not looked for again unless the bias says so.
			 * Release: as in set_bias_again().
			 */
			fg_store_release(&rw->bias, 1);
			return r;
		}
	}
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
	fg_store_relaxed(&rw->inhibit, INHIBIT_READERS * lines_of_table());
	if (fg_likely(get_in(rw) && !fg_load_relaxed(&rw->bias)))
		return 0;
	if (at_once) /* a writer that waited for the gate as well counts once */
		fg_count(t, FG_STAT_CONTENDED, 1);
	r = drain(rw, t, deadline);
	if (r)
		_fg_unlock(&rw->gate);
	return r;
}

int _fg_rwlock_trywrlock(struct fg_rwlock *rw)
{
	static const struct fg_deadline past = {.clock = CLOCK_MONOTONIC};
	struct fg_self *t = fg_self();

	if ((fg_load_relaxed(&rw->readers) & COUNT) || !_fg_trylock(&rw->gate))
		return EBUSY;
	fg_store_relaxed(&rw->gate.tag, 1);
	fg_store_relaxed(&rw->inhibit, INHIBIT_READERS * lines_of_table());
	if (get_in(rw) && !fg_load_relaxed(&rw->bias))
		return 0;
	if (!drain(rw, t, &past))
		return 0;
	_fg_unlock(&rw->gate);
	return EBUSY;
}

/* ---- both ----------------------------------------------------------------------- */

int _fg_rwlock_unlock(struct fg_rwlock *rw)
{
	struct fg_self *t = fg_self();

	if (i_write(rw, t)) {
		_fg_unlock(&rw->gate);
		return 0;
	}
	/* Once the lock is released its memory may be gone. */
	if (!fg_id_has_slot(t->id) || !take_out(line_of(t), rw))
		leave(rw);
	fg_section_leave(t);
	return 0;
}

__attribute__((noinline, cold)) int _fg_rwlock_rdlock_traced(struct fg_rwlock *rw,
							     const struct fg_deadline *deadline,
							     const void *caller)
{
	struct fg_traced t = fg_trace_begins();
	int r = _fg_rwlock_rdlock_untraced(rw, deadline);

	fg_trace_ends(&t, rw, caller);
	return r;
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
