/* SPDX-License-Identifier: MIT */
#include "lock/rounds.h"

#include "lock/give_way.h"
#include "lock/queue.h"

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

/* Of a native lock: both parts, since its release tells nothing.  Not varied. */
#define SHORT_NATIVE_ROUND_NS 1000u

/* One round in so many is timed.  Not varied. */
#define TIMED_EVERY 16u
_Static_assert(TIMED_EVERY == 16, "fg_self.times_head wraps there");

/* Threads on two nodes within so many units of 2^24 ns, 17 ms: 50 to 67 ms.  Not varied. */
#define SEEN_UNIT_LOG2 24
#define SEEN_LATELY    3u

/*
 * Threads of this process have come from several NUMA nodes lately: a hint.  It is of all locks,
 * since whether those of one do would take a place in it.
 */
static bool spans_nodes(const struct fg_self *t, uint64_t now)
{
	static uint32_t seen[8] __attribute__((aligned(FG_CACHE_LINE))); /* by node, when */
	uint32_t i, near, mine, unit = (uint32_t)(now >> SEEN_UNIT_LOG2);

	if (!_fg_queue_near(t, &near))
		return false;
	mine = near / (FG_NEAR_CACHE + 1);
	if (fg_load_relaxed(&seen[mine]) != unit)
		fg_store_relaxed(&seen[mine], unit);
	for (i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		/* or in the next one, by another's clock */
		if (i != mine && unit + 1 - fg_load_relaxed(&seen[i]) <= SEEN_LATELY + 1)
			return true;
	return false;
}
_Static_assert(FG_NEAR_NODE / (FG_NEAR_CACHE + 1) == 7, "eight nodes");

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
	me->round_since = round_clock(fg_now_ns());
	me->round_of = part_of_address(address(l)) & 0x7fff;
	me->round_is_released = 0;
	t->round_is_timed = 1;
}

void _fg_round_releases(struct fg_self *t)
{
	struct fg_thread *me = fg_thread_mine(t);
	uint64_t now;
	uint32_t ns;

	if (me->round_is_released)
		return;
	now = fg_now_ns();
	ns = round_time(me->round_since, now);
	_fg_section_took(t, ns);
	if (ns > SHORT_SECTION_NS) {
		judge(t, false);
		t->round_is_timed = 0;
		return;
	}
	me->round_since = round_clock(now);
	me->round_is_released = 1;
}

/*
 * Past other locks it goes on: a lock that threads leave for others lies free while its head keeps
 * away from it.
 */
void _fg_round_ends(const struct fg_lock *l, struct fg_self *t)
{
	const struct fg_thread *me = fg_thread_mine(t);
	uint64_t now = fg_now_ns();
	uint32_t ns = round_time(me->round_since, now),
		 most = spans_nodes(t, now) ? BACK_FAR_NS : BACK_NS;

	if (ns <= most && me->round_of != (part_of_address(address(l)) & 0x7fff))
		return;
	judge(t, ns <= most);
	_fg_was_away(t, ns);
	t->round_is_timed = 0;
}

/*
 * Its release may come the fast way, unseen.  A long one: to drop it instead leaves the short ones
 * of a queue with a condition variable, which then makes 0.76 (2 producers and 2 consumers, 2
 * CPUs).
 */
void _fg_round_has_another(struct fg_self *t)
{
	judge(t, false);
	t->round_is_timed = 0;
}

void _fg_native_round_took(struct fg_self *t, uint32_t ns)
{
	judge(t, ns <= SHORT_NATIVE_ROUND_NS);
}
