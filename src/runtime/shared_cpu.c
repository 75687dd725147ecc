/* SPDX-License-Identifier: MIT */
/*
 * CPUs that are shared with other processes: docs/design/rounds.md, "Beside other processes".
 */
#include "runtime/decide.h"
#include "sys/futex.h"

/* In the units of shares_since. */
#define UNITS(ns) ((ns) >> FG_SHARES_LOG2)

/* Ticks of CPUs are some us apart.  Not varied. */
#define SAME_TIME_NS 500000

/* Later in its turn a thread stays: what it gave up would be the end of it.  Not varied. */
#define WAY_NS 2000000u

/* With turns of more than that it stays.  Not varied. */
#define TURN_MOST_NS 10000000u

/*
 * Two threads that get half of a CPU each may have them at the same time or in turn.  The scheduler
 * does not care, and ticks of all CPUs come together, so either goes on for long.  One that sleeps
 * once until the other's turn is nearly over gets its own when that is.  Of two that have come at
 * the same time either does, by chance; else the earlier one, whose turn ends sooner.
 */
static bool is_mine_to_go(uint32_t mine, uint32_t its, bool higher)
{
	int32_t later = (int32_t)(its - mine);

	if (later < (int32_t)-UNITS(SAME_TIME_NS) || later > (int32_t)UNITS(SAME_TIME_NS))
		return later > 0;
	return ((mine + its) >> 2 & 1) == higher; /* both see the same */
}

static uint64_t left_of_turn_ns(const struct fg_slot *slot, uint32_t began, uint32_t now)
{
	/* Woken before its end, a thread is queued when it comes. */
	uint32_t turn = fg_load_relaxed(&slot->turn), use = turn - turn / 4, had = now - began;

	if (turn > UNITS(TURN_MOST_NS) || had >= use)
		return 0;
	return (uint64_t)(use - had) << FG_SHARES_LOG2;
}

uint64_t fg_give_way(struct fg_self *t, uint32_t owner)
{
	uint32_t mine = fg_load_relaxed(&t->slot->shares_since), its, now, nobody = 0;
	uint64_t clock, ns;
	struct fg_deadline end;
	const struct fg_slot *slot;

	if (!mine || !fg_id_has_slot(owner) || fg_is_owner_off(owner))
		return 0;
	slot = fg_slot_look(fg_id_index(owner));
	its = fg_load_relaxed(&slot->shares_since);
	if (!its)
		return 0;
	clock = fg_now_ns();
	now = (uint32_t)UNITS(clock);
	if (fg_barriers_are_used(t, clock) || now - mine > UNITS(WAY_NS) ||
	    !is_mine_to_go(mine, its, t->id > owner))
		return 0;
	ns = left_of_turn_ns(slot, its, now);
	/* Once a turn. */
	if (!ns || !fg_cas_relaxed(&t->slot->shares_since, &mine, 0))
		return 0;
	fg_deadline_in(&end, ns);
	if (fg_is_real_time(t))
		return 0;
	fg_futex_wait(&nobody, 0, FG_FUTEX_ANY, &end);
	return fg_now_ns() - clock;
}
