/* SPDX-License-Identifier: MIT */
#include "lock/give_way.h"

#include "lock/rounds.h"

/*
 * To take turns pays if a round, as it is when two are at it, takes no longer than so many journeys
 * of a cache line from one CPU to the other.  On a 2-CPU VM with journeys of 120 ns 300 ns inside
 * and outside gained 23 %, 500 ns 5 %; with journeys of 10 ns 1 us lost a quarter (by yields;
 * docs/design/experiments.md, "Other rules for it").
 */
#define BRIEF_JOURNEYS 12u

/*
 * How often the same two have met in these turns of theirs, with no others in between; a hint, too:
 * pairs that meet at two locks keep each other from giving way.
 */
#define OFTEN 16 /* not varied */
static struct __attribute__((aligned(FG_CACHE_LINE))) {
	uint32_t two, times;
} met;

static bool rounds_are_brief(void)
{
	uint32_t ns = _fg_rounds_ns();

	return ns && ns <= _fg_journeys_ns(BRIEF_JOURNEYS);
}

/* Both see the same number of these two threads, and of these turns. */
static bool meet_often(const struct fg_self *t, uint32_t owner)
{
	uint32_t turns = fg_load_relaxed(&t->slot->shares_since) +
			 fg_load_relaxed(&fg_slot_look(fg_id_index(owner))->shares_since),
		 ids = t->id < owner ? t->id * 31 + owner : owner * 31 + t->id,
		 two = ids + turns * 7, times = fg_load_relaxed(&met.times);

	if (fg_load_relaxed(&met.two) != two) {
		fg_store_relaxed(&met.two, two);
		fg_store_relaxed(&met.times, 0);
		return false;
	}
	if (times < OFTEN)
		fg_store_relaxed(&met.times, times + 1);
	return times == OFTEN;
}

/*
 * Where two threads are at it, and who holds nothing else.  With more of them there is mostly one
 * on a CPU anyway, and the owner loses its own at the very tick at which one that gave way comes
 * (docs/design/experiments.md, "Other rules for it").
 */
bool _fg_gives_way(const struct fg_lock *l, struct fg_self *t, struct attempt *a, uint32_t word)
{
	uint32_t owner = word & FG_WORD_ID;
	uint64_t ns;

	if (fg_likely(!fg_shares_cpu(t)) || fg_policy_now != FG_POLICY_DEFAULT || a->deadline ||
	    !fg_id_has_slot(owner) || !fg_has_slot(t) || locks_announced(t) != 1 || fg_sections ||
	    t->role != FG_ROLE_NONE || fg_load_relaxed(&l->tail) || !rounds_are_brief() ||
	    !meet_often(t, owner))
		return false;
	fg_set_pending(t, 0); /* as in sleep_on() */
	ns = fg_give_way(t, owner);
	fg_set_pending(t, address(l));
	if (!ns)
		return false;
	slept_by_itself(t, a, ns);
	return true;
}
