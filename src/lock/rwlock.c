/* SPDX-License-Identifier: MIT */
/* Readers of the reader-writer lock (legend: rwlock.h), and its release. */
#include <errno.h>

#include "lock/lock_paths.h"
#include "lock/rounds.h"
#include "lock/rwlock_paths.h"

/*
 * How long a reader waits for a writer before it looks whether it may pass, when it holds a read
 * lock already.  Not varied.
 */
#define RECURSIVE_NS 50000u

static __thread uint8_t fg_biased_reads; /* counts those with a barrier, to look at some */

/* ---- visible readers -------------------------------------------------------- */

enum visible {
	INVISIBLE,
	VISIBLE,	  /* this thread reads now */
	VISIBLE_FOR_LONG, /* and is one of those that look whether it could do without a barrier */
	UNBIASED /* it is in the table, but the bias has been taken back: see withdraws_visible() */
};

/* `id`: its own, with a slot. */
static inline enum visible enter_visible(struct fg_rwlock *rw, struct fg_self *t, uint32_t id)
{
	/* Acquire: its table has been seen to (has_table). */
	uint32_t bias = fg_load_acquire(&rw->bias), now;

	if (!bias || !fg_visible_enter(t, id, rw, bias == FG_RW_ASYMMETRIC))
		return INVISIBLE;
#ifdef FG_BROKEN_RWLOCK_TABLE /* a test proves that the tests notice */
	return VISIBLE;
#endif
	/*
	 * Dekker with revoke_bias(): it clears the bias and then looks at the table.  Acquire:
	 * the reader that set the bias had seen what the last writer did.
	 */
	now = fg_load_acquire(&rw->bias);
	if (fg_unlikely(now != bias)) {
		/* Another one, whose writer leaves the barrier to us? */
		fg_fence_seq_cst();
		return fg_load_acquire(&rw->bias) ? VISIBLE : UNBIASED;
	}
	if (bias != FG_RW_BIASED || fg_likely(++fg_biased_reads))
		return VISIBLE;
	return VISIBLE_FOR_LONG;
}

static enum fg_visible_leaves leave_visible(const struct fg_rwlock *rw, const struct fg_self *t)
{
	return has_table(rw) ? _fg_visible_leave(t, rw) : FG_VISIBLE_NOT_THERE;
}

/* ---- counted readers -------------------------------------------------------- */

/*
 * When a writer has been waited for hundreds may leave at once.  One compare-and-swap succeeds then
 * for each row of all that try.  So who fails twice leaves the line alone for some times as long as
 * that took: proportional backoff (Mellor-Crummey, Scott, TOCS 1991).  A subtraction would not
 * fail, but nobody knows beforehand that it is not one too many.  Not varied.
 */
#define LEAVES_FOR     4u
#define LEAVES_MOST_NS 200000u
#define LEAVES_PAUSES  4096u

static __attribute__((noinline)) uint32_t look_later(const struct fg_rwlock *rw, uint64_t *failed)
{
	uint64_t now = fg_now_ns(), ns = (now - *failed) * LEAVES_FOR;

	/* What takes longer is no row: it has lost its CPU. */
	if (*failed && ns < LEAVES_MOST_NS) {
		pause_until(now + ns, LEAVES_PAUSES);
		now = fg_now_ns();
	}
	*failed = now;
	return fg_load_relaxed(&rw->readers);
}

/* False if there is none.  After it, the lock may be gone. */
static inline bool leave_counted(struct fg_rwlock *rw)
{
	uint32_t r = fg_load_relaxed(&rw->readers);
	uint64_t failed = 0;

	while (r & COUNT) {
		/* Release: pairs with the writer's CAS in drain(). */
		if (!fg_cas_release(&rw->readers, &r, r - 1)) {
			r = look_later(rw, &failed);
			continue;
		}
		if (fg_unlikely((r & (COUNT | DRAINER_SLEEPS)) == (1 | DRAINER_SLEEPS)))
			fg_futex_wake(&rw->readers, 1, FG_FUTEX_ANY);
		return true;
	}
	return false;
}

/*
 * A thread that has locked for itself is found in the count at once.  Those that unlock for
 * others look several times: if two of them unlock at once, a reader may move to where one has
 * looked.  One that finds another at the same column waits until that is done.  In a signal handler
 * that has interrupted such an unlock it may be this very thread, which goes on only afterwards: so
 * there it gives up after 0.1 s.  Not varied.
 */
#define ENTRY_LOOKS 8
#define BUSY_NS	    50000u
#define BUSY_LOOKS  2000u

static void wait_a_moment(void)
{
	struct fg_deadline soon;
	uint32_t nobody = 0;

	fg_deadline_in(&soon, BUSY_NS);
	fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &soon);
}

/* More than one: a signal handler has interrupted it. */
static __thread uint8_t fg_releasing;

static enum fg_visible_release release(struct fg_rwlock *rw)
{
	enum fg_visible_release r;

	fg_releasing++;
	fg_fence_local();
	r = _fg_visible_release(rw);
	fg_fence_local();
	fg_releasing--;
	return r;
}

static __attribute__((noinline)) void leave(struct fg_rwlock *rw)
{
	uint32_t looks = 0, busy = 0;

	while (looks < ENTRY_LOOKS && !leave_counted(rw)) {
		enum fg_visible_release r = has_table(rw) ? release(rw) : FG_VISIBLE_NOBODY;

		if (r == FG_VISIBLE_RELEASED)
			return;
		if (r == FG_VISIBLE_BUSY && (!fg_releasing || busy++ < BUSY_LOOKS))
			wait_a_moment();
		else
			looks++;
	}
}

static __attribute__((noinline)) void withdraw(struct fg_rwlock *rw, struct fg_self *t)
{
	leave(rw);
	fg_section_leave(t);
}

/*
 * Acquire: a reader that finds the gate free sees what the last writer did.  So does one that has
 * seen that writer's id, and now finds the tag of whoever had the gate after it: pairs with the
 * release in set_tag().
 */
static bool writer_at_gate(struct fg_rwlock *rw)
{
	uint32_t owner = fg_load_acquire(&rw->gate.word) & FG_WORD_ID;

#ifdef FG_BROKEN_TAG /* a test proves that the tests notice */
	return owner && tag_says(fg_load_relaxed(&rw->gate.tag), owner) != NO_WRITER;
#endif
	return owner && tag_says(fg_load_acquire(&rw->gate.tag), owner) != NO_WRITER;
}

/*
 * Counts this thread in: what was counted before.  The order of all changes of `readers` decides
 * against a writer: a reader that is counted before its CAS keeps it waiting, one that is counted
 * after sees all that it did to the gate.
 */
static inline uint32_t count_in(struct fg_rwlock *rw, struct fg_self *t)
{
	fg_section_enter(t);
	return fg_add_acq_rel(&rw->readers, 1);
}

/*
 * It has been counted, and has found a writer.  It passes that if it may, but not beside its own
 * thread, which is about to find out whether it has to wait.
 */
static bool passes(struct fg_rwlock *rw, struct fg_self *t, bool may_pass, uint32_t before)
{
	return may_pass && !(before & WRITER_IN) && i_am_at_gate(rw, t) != WRITES;
}

static inline bool are_too_many(uint32_t before)
{
	return (before & COUNT) >= READERS_MAX;
}

/* 0, in a section; EBUSY or EAGAIN, in none. */
static int enter_counted(struct fg_rwlock *rw, struct fg_self *t, bool may_pass)
{
	uint32_t before = count_in(rw, t);
	int r = EBUSY;

	if (writer_at_gate(rw)) {
		if (passes(rw, t, may_pass, before))
			return 0;
	} else {
		if (!are_too_many(before))
			return _fg_rwlock_counted(rw, t);
		r = EAGAIN;
	}
	withdraw(rw, t);
	return r;
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

static uint64_t patience(struct fg_rwlock *rw)
{
	uint32_t times = fg_load_relaxed(&rw->patience);

	/* Memory that no rwlock_init() has seen may hold anything. */
	return (uint64_t)FG_RW_PATIENCE_NS
	       << 2 * (times < FG_RW_PATIENCE_MOST ? times : FG_RW_PATIENCE_MOST);
}

static uint32_t at_gate(const struct fg_rwlock *rw)
{
	return fg_load_relaxed(&rw->gate.word) & FG_WORD_ID;
}

/* Past all readers: so it waits for none. */
static bool writer_is_in(const struct fg_rwlock *rw)
{
	return fg_load_relaxed(&rw->readers) & WRITER_IN;
}

/*
 * Nor does this thread read.  WRITER_IN alone says nothing of it: the flag outlives its writer, and
 * the next one is at the gate before it has taken it back.  With the bias its place may be in the
 * line of another thread, if that one was unlocked for.
 */
static bool i_do_not_read(const struct fg_rwlock *rw, const struct fg_self *t)
{
	const struct fg_visible_line *line = fg_visible_mine(t);

	return !fg_load_acquire(&rw->bias) &&
	       (fg_load_relaxed(&rw->readers) & (COUNT | WRITER_IN)) == WRITER_IN &&
	       !(line && fg_visible_reads(line, rw));
}

/*
 * This reader's patience is over.  False if it has waited for its turn, as hundreds of readers do
 * at a time: to wake each of them every 10 ms costs more than the lock does.  So the next waits are
 * longer, until one of them has been behind one writer all the time, which may wait for a reader
 * that waits for this one.  Not one that is in.
 */
static bool behind_one_writer(struct fg_rwlock *rw, uint32_t writer)
{
	uint32_t times = fg_load_relaxed(&rw->patience);

	if (at_gate(rw) == writer && !writer_is_in(rw)) {
		fg_store_relaxed(&rw->patience, 0);
		return true;
	}
	if (times < FG_RW_PATIENCE_MOST)
		fg_store_relaxed(&rw->patience, times + 1);
	return false;
}

/* A writer is about: waits in its queue. */
static __attribute__((noinline)) int rdlock_contended(struct fg_rwlock *rw, struct fg_self *t,
						      const struct fg_deadline *deadline)
{
	bool writers_first = rw->kind == FG_RW_WRITERS_FIRST;
	bool recursive = fg_sections != 0; /* perhaps: of another lock, or a spinlock */
	enum at_gate me = i_am_at_gate(rw, t);
	int r;

	/* In a signal handler, which waits for no writer but its own thread: now or never. */
	if (me == COMES && !enter_counted(rw, t, !writers_first))
		return 0;
	if (me != NO_WRITER)
		return EDEADLK;
	/* In a child of fork the writer may be one that waits in the parent, and goes nowhere. */
	if (fg_unlikely(fg_epoch) && !writers_first && fg_id_is_foreign(at_gate(rw)) &&
	    !enter_counted(rw, t, true))
		return 0;
	for (;;) {
		bool late;
		uint32_t writer = at_gate(rw);
		uint64_t began = fg_now_ns(), patient = patience(rw);
		struct fg_deadline soon;

		/* Or it would look every 50 us while that writer is in, and pass at none. */
		if (recursive && i_do_not_read(rw, t))
			recursive = false;
		r = gate_lock(rw,
			      writers_first ?
				  deadline :
				  no_later(&soon, recursive ? RECURSIVE_NS : patient, deadline));
		if (!r) {
			/* It has found out by its own clock, so more of them are needed. */
			if (patient > FG_RW_PATIENCE_NS && fg_now_ns() - began >= patient)
				fg_store_relaxed(&rw->patience, 0);
			/*
			 * No writer now, and none until we are counted; also if a signal handler
			 * of this thread has been one meanwhile.
			 */
			set_tag(rw, 0, NO_WRITER);
			r = enter_counted(rw, t, true);
			_fg_unlock(&rw->gate);
			return r;
		}
		late = deadline && fg_deadline_passed(deadline);
		if (!writers_first && !recursive && !late && !behind_one_writer(rw, writer))
			continue;
		/*
		 * A signal handler may have taken all the time: what can be had at once is had,
		 * late or not.
		 */
		r = enter_counted(rw, t, !writers_first);
		if (r != EBUSY || late)
			return r == EBUSY ? ETIMEDOUT : r;
	}
}

/*
 * From here on, what is rare is the last that a function calls, so that the fast paths need no
 * stack: each store that comes before an atomic delays it.
 */
static __attribute__((noinline)) int rdlock_too_many(struct fg_rwlock *rw, struct fg_self *t)
{
	withdraw(rw, t);
	return EAGAIN;
}

static __attribute__((noinline)) int rdlock_beside_writer(struct fg_rwlock *rw, struct fg_self *t,
							  const struct fg_deadline *deadline,
							  bool may_pass, uint32_t before)
{
	if (passes(rw, t, may_pass, before))
		return 0;
	withdraw(rw, t);
	return rdlock_contended(rw, t, deadline);
}

static inline int rdlock_in_round(struct fg_rwlock *rw, struct fg_self *t,
				  const struct fg_deadline *deadline)
{
	bool may_pass = fg_sections && rw->kind != FG_RW_WRITERS_FIRST;
	uint32_t before;

	if (fg_unlikely(writer_at_gate(rw)) && !fg_sections)
		/* most likely busy; without a write to the line that the writer needs */
		return rdlock_contended(rw, t, deadline);
	before = count_in(rw, t);
	if (fg_unlikely(writer_at_gate(rw)))
		return rdlock_beside_writer(rw, t, deadline, may_pass, before);
	return fg_unlikely(are_too_many(before)) ? rdlock_too_many(rw, t) :
						   _fg_rwlock_counted(rw, t);
}

static __attribute__((noinline)) int rdlock_ends_round(struct fg_rwlock *rw, struct fg_self *t,
						       const struct fg_deadline *deadline)
{
	round_ends(&rw->gate, t);
	return rdlock_in_round(rw, t, deadline);
}

static inline int rdlock_invisible(struct fg_rwlock *rw, struct fg_self *t,
				   const struct fg_deadline *deadline)
{
	return fg_unlikely(t->round_is_timed) ? rdlock_ends_round(rw, t, deadline) :
						rdlock_in_round(rw, t, deadline);
}

/* The bias has been taken back. */
static bool withdraws_visible(struct fg_rwlock *rw, struct fg_self *t)
{
	switch (_fg_visible_leave(t, rw)) {
	case FG_VISIBLE_NOT_THERE:
		/*
		 * A signal handler has left with our entry, and left its place in the count, which
		 * keeps the writers out, to us: this thread reads nevertheless.
		 */
		return false;
	case FG_VISIBLE_NOT_ITS: leave(rw); break; /* for whom the other thread unlocked */
	case FG_VISIBLE_GONE:
	case FG_VISIBLE_NOTICED: break;
	}
	fg_section_leave(t);
	return true;
}

static __attribute__((noinline)) int rdlock_unbiased(struct fg_rwlock *rw, struct fg_self *t,
						     const struct fg_deadline *deadline)
{
	return withdraws_visible(rw, t) ? rdlock_invisible(rw, t, deadline) : 0;
}

static __attribute__((noinline)) int rdlock_no_slot(struct fg_rwlock *rw,
						    const struct fg_deadline *deadline)
{
	struct fg_self *t = fg_self();

	/* set up just now? */
	return fg_id_has_slot(t->id) ? _fg_rwlock_rdlock_untraced(rw, deadline) :
				       rdlock_invisible(rw, t, deadline);
}

int _fg_rwlock_rdlock_untraced(struct fg_rwlock *rw, const struct fg_deadline *deadline)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t id = t->id;

	if (fg_unlikely(!fg_id_has_slot(id))) /* nor has one that is not set up */
		return rdlock_no_slot(rw, deadline);
	switch (enter_visible(rw, t, id)) {
	case VISIBLE: return 0;
	case VISIBLE_FOR_LONG: return _fg_rwlock_read_for_long(rw);
	case UNBIASED: return rdlock_unbiased(rw, t, deadline);
	case INVISIBLE: break;
	}
	return rdlock_invisible(rw, t, deadline);
}

int _fg_rwlock_tryrdlock(struct fg_rwlock *rw)
{
	struct fg_self *t = fg_self();
	enum visible v = fg_id_has_slot(t->id) ? enter_visible(rw, t, t->id) : INVISIBLE;
	bool may_pass = rw->kind != FG_RW_WRITERS_FIRST;

	if (v == VISIBLE_FOR_LONG)
		return _fg_rwlock_read_for_long(rw);
	if (v == VISIBLE || (v == UNBIASED && !withdraws_visible(rw, t)))
		return 0;
	/* In vain, it leaves no mark by which a writer's try would be in vain as well. */
	if (writer_at_gate(rw) && !(may_pass && !(fg_load_relaxed(&rw->readers) & WRITER_IN)))
		return EBUSY;
	return enter_counted(rw, t, may_pass);
}

/* ---- both ----------------------------------------------------------------------- */

/* Once the lock is released its memory may be gone. */
static __attribute__((noinline)) int rdunlock(struct fg_rwlock *rw)
{
	struct fg_self *t = fg_self();

	if (leave_visible(rw, t) != FG_VISIBLE_GONE && !leave_counted(rw))
		leave(rw);
	fg_section_leave(t);
	return 0;
}

static __attribute__((noinline)) int wrunlock(struct fg_rwlock *rw)
{
	return _fg_unlock_slow(&rw->gate);
}

/* Of a thread that has another id now, or will have. */
static __attribute__((noinline)) int unlock_former(struct fg_rwlock *rw)
{
	if (i_am_at_gate(rw, fg_self()) != WRITES)
		return rdunlock(rw);
	writer_leaves(rw);
	return 0;
}

/* Its entry has been taken out. */
static __attribute__((noinline)) int unlock_noticed(struct fg_rwlock *rw, struct fg_self *t)
{
	if (_fg_visible_left(fg_visible_mine(t), rw) == FG_VISIBLE_NOT_ITS)
		return rdunlock(rw);
	fg_section_leave(t);
	return 0;
}

/* The usual case of leave_counted(): nobody sleeps.  False: nothing has happened. */
static inline bool leaves_alone(struct fg_rwlock *rw)
{
	/* One that fails goes on with what it has found: another look would pull the line again. */
	uint32_t r = fg_load_relaxed(&rw->readers);

	for (uint32_t tries = 0; tries < 2; tries++) {
		if (!(r & COUNT) || (r & DRAINER_SLEEPS))
			return false;
		if (fg_cas_release(&rw->readers, &r, r - 1))
			return true;
	}
	return false;
}

int _fg_rwlock_unlock(struct fg_rwlock *rw)
{
	struct fg_self *t = &fg_self_tls;
	uint32_t owner = fg_load_relaxed(&rw->gate.word) & FG_WORD_ID, id;
	struct fg_visible_line *line;

	if (owner) { /* i_am_at_gate() */
		if (fg_unlikely(owner == fg_former_id(t)))
			return unlock_former(rw);
		if (owner == t->id && writer_is_sure(rw, owner))
			return fg_likely(writer_leaves_fast(rw)) ? 0 : wrunlock(rw);
	}
	id = t->id;
	if (fg_unlikely(!fg_id_has_slot(id)))
		return rdunlock(rw);
	/* In the order of rdunlock(). */
	line = has_table(rw) ? fg_visible_of(id) : NULL;
	switch (line ? fg_visible_clear(line, rw) : FG_VISIBLE_NOT_THERE) {
	case FG_VISIBLE_GONE: break;
	case FG_VISIBLE_NOTICED:
	case FG_VISIBLE_NOT_ITS: return unlock_noticed(rw, t);
	case FG_VISIBLE_NOT_THERE:
		if (fg_unlikely(!leaves_alone(rw)))
			return rdunlock(rw);
	}
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
