/* SPDX-License-Identifier: MIT */
#include "lock/native_wait.h"

#include "arch/arch.h"
#include "lock/rounds.h"
#include "runtime/count.h"
#include "runtime/decide.h"

/*
 * Questions (about 20 ns each) between two looks at the word, which take its
 * line from the owner: few at first, then more; many where rounds are short.
 * Measured on a 2-CPU VM with Linux 6.18 (docs/design/experiments.md, "Spinning before glibc's
 * mutexes").
 */
#define LOOK_FIRST 4u
#define LOOK_LAST  16u
#define LOOK_SHORT 160u

static struct fg_spin_histories histories; /* not in the locks, which are glibc's */

static fg_spin_history *history_of(const uint32_t *word)
{
	return fg_spin_history_at(&histories, (uintptr_t)word >> 3);
}

static uint32_t owner_tid(const struct fg_native_view *lock)
{
	return fg_load_relaxed(lock->owner) & lock->tid_bits;
}

/* FG_EVENT_NS is also what may be lost on a section that turns out to be long. */
static bool late(const struct fg_wait *w, const struct fg_deadline *deadline)
{
	if (fg_likely(w->asked % FG_CLOCK_EVERY != 1))
		return false;
	return (fg_policy_now != FG_POLICY_SPIN && fg_now_ns() - w->since_ns >= FG_EVENT_NS) ||
	       fg_deadline_passed(deadline);
}

/* Asks so often; false: do not wait on. */
static bool stay(struct fg_wait *w, uint32_t questions, const struct fg_deadline *deadline)
{
	while (questions--) {
		if (fg_decide(w) == FG_BLOCK || late(w, deadline))
			return false;
		fg_pause();
	}
	return true;
}

static bool spin(struct fg_wait *w, const struct fg_native_view *lock,
		 const struct fg_deadline *deadline)
{
	bool short_rounds = rounds_are_short(w->self);
	uint32_t questions = short_rounds ? LOOK_SHORT : LOOK_FIRST;

	/* Relaxed: it is the native call that takes the lock. */
	while (fg_load_relaxed(lock->word) & lock->held) {
		w->owner = fg_id_of_tid(owner_tid(lock));
		if (!stay(w, questions, deadline))
			return false;
		if (questions < LOOK_LAST)
			questions *= 2;
	}
	return true;
}

/*
 * Not fg_wait_for_event(), which yields the CPU now and then: the owner of a lock is soon done with
 * it.
 */
static bool spin_by_history(struct fg_self *self, const struct fg_native_view *lock,
			    const struct fg_deadline *deadline)
{
	struct fg_wait w = {.self = self};
	fg_spin_history *history = history_of(lock->word), had = fg_load_relaxed(history), now;
	bool tries = had < FG_SPIN_HISTORY_STOP && fg_cpus_allotted() > 1 && !fg_is_rationed() &&
		     !fg_displaces(self);
	bool in_time = tries && spin(&w, lock, deadline);

	fg_count(self, FG_STAT_SPINS, w.asked);
	now = fg_spin_history_after(had, tries, in_time);
	if (now != had)
		fg_store_relaxed(history, now);
	return in_time;
}

bool _fg_native_wait(struct fg_self *self, const struct fg_native_view *lock,
		     const struct fg_deadline *deadline)
{
	if (owner_tid(lock) == fg_thread_tid(self))
		return false;
	fg_count_contended(self);
	if (!spin_by_history(self, lock, deadline))
		return false;
	fg_count(self, FG_STAT_SPUN, 1);
	if (fg_id_has_slot(self->id) && self->times_head++ == 0) /* one in 16 */
		fg_thread_mine(self)->native_since = round_clock(fg_now_ns()) | 1;
	return true;
}

void _fg_native_round_ends(struct fg_self *self)
{
	struct fg_thread *me = fg_thread_mine(self);

	_fg_native_round_took(self, round_time(me->native_since, fg_now_ns()));
	me->native_since = 0;
}
