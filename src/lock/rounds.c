/* SPDX-License-Identifier: MIT */
#include "lock/rounds.h"

#include "lock/queue.h"
#include "runtime/policy.h"

/*
 * A short round is back for the lock within BACK_NS: about a hand-over, in which the others would
 * have had the lock meanwhile, and worked at the same time.  On a fast 2-CPU VM the head's backoff
 * neither gains nor loses with 100 ns outside, and with 200 loses 35 %; between two sockets it
 * gains twice as much with 200 and with 300 (simulated).  That time has no journeys of the lock's
 * lines in it.  The section may have some: between those of the FlexGuard paper's loop and those of
 * 1 us, which gain nothing (docs/design/experiments.md, "Backoff of the head").
 */
#define BACK_NS		 128u
#define BACK_FAR_NS	 512u
#define SHORT_SECTION_NS 1000u

/* One round in so many is timed.  Not varied. */
#define TIMED_EVERY 16u
_Static_assert(TIMED_EVERY == 16, "fg_self.times_head wraps there");

/* Low bits: in a millisecond's distance a round looks short, now and then. */
static uint16_t coarse_clock(void)
{
	return (uint16_t)(fg_now_ns() / FG_ROUND_UNIT_NS);
}

static uint16_t part_of_address(const struct fg_lock *l)
{
	return (uint16_t)(address(l) / sizeof(uint64_t)) & 0x7fff;
}

static uint32_t time_since(uint16_t since)
{
	return (uint16_t)(coarse_clock() - since) * FG_ROUND_UNIT_NS;
}

/* Threads of this process run on several NUMA nodes, or have: a hint. */
static bool spans_nodes(const struct fg_self *t)
{
	static uint32_t several, a_node;
	uint32_t node, had;

	if (fg_load_relaxed(&several))
		return true;
	if (!fg_policy_has_monitor()) /* which says where CPUs are */
		return false;
	node = (_fg_queue_near(t) & FG_NEAR_NODE) | 1;
	had = fg_load_relaxed(&a_node);
	if (!had)
		fg_store_relaxed(&a_node, node);
	else if (had != node)
		fg_store_relaxed(&several, 1);
	return had && had != node;
}

static void judge(struct fg_self *t, bool is_short)
{
	if (is_short)
		t->short_rounds += t->short_rounds < 3;
	else
		t->short_rounds -= t->short_rounds > 0;
}

void _fg_round_begins(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me;

	if (t->times_head++ || !fg_id_has_slot(t->id))
		return;
	me = fg_thread_mine(t);
	me->round_since = coarse_clock();
	me->round_of = part_of_address(l);
	me->round_is_released = 0;
	t->round_is_timed = 1;
}

void _fg_round_releases(struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);

	if (me->round_is_released)
		return;
	if (time_since(me->round_since) > SHORT_SECTION_NS) {
		judge(t, false);
		t->round_is_timed = 0;
		return;
	}
	me->round_since = coarse_clock();
	me->round_is_released = 1;
}

/*
 * Past other locks it goes on: a lock that threads leave for others lies free while its head keeps
 * away from it.
 */
void _fg_round_ends(const struct fg_lock *l, struct fg_self *t)
{
	const struct fg_thread *me = fg_thread_mine(t);
	uint32_t ns = time_since(me->round_since), most = spans_nodes(t) ? BACK_FAR_NS : BACK_NS;

	if (ns <= most && me->round_of != part_of_address(l))
		return;
	judge(t, ns <= most);
	t->round_is_timed = 0;
}

void _fg_native_round_took(struct fg_self *t, uint32_t ns)
{
	judge(t, ns <= SHORT_SECTION_NS);
}
