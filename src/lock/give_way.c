/* SPDX-License-Identifier: MIT */
#include "lock/give_way.h"

#include "lock/rounds.h"

/*
 * To take turns pays if a round, as it is when two are at it, takes no longer than so many journeys
 * of a cache line from one's CPU to the other's.  The same 2-CPU VM is found with journeys of 10 ns
 * and of 120; there 300 ns inside and outside gain 23 %, 500 ns 5 %, and 1 us would lose a quarter
 * (docs/design/lock.md, "Beside other processes").
 */
#define BRIEF_JOURNEYS 12u

/* What takes longer has been interrupted: no journey, and a round as long as that.  Not varied. */
#define JOURNEY_MOST_NS 2000
#define ROUND_MOST_NS	4000

/*
 * Lately, of all locks and threads of this process that share their CPUs, in PARTS of a ns; 0: not
 * known.  Hints: written without order, and of several locks the one that is got as the head most
 * often counts most.
 */
#define PARTS 16
#define ALIKE 16 /* waits in a row; not varied */
static struct __attribute__((aligned(FG_CACHE_LINE))) {
	uint32_t section, away; /* until the release; from there to the next lock */
	uint32_t journey;
	uint32_t both;	/* the sum of the ids of the last waiter and its owner */
	uint32_t alike; /* so many waits in a row have been of the same two */
} lately;

/* Moves the average by an eighth of the way.  Not varied. */
static void note(uint32_t *average, uint32_t ns)
{
	uint32_t before = fg_load_relaxed(average), now = ns * PARTS;

	if (before)
		now = before - before / 8 + now / 8;
	fg_store_relaxed(average, now ? now : 1);
}

void _fg_section_took(const struct fg_self *t, uint32_t ns)
{
	if (fg_unlikely(fg_shares_cpu(t)))
		note(&lately.section, ns < ROUND_MOST_NS ? ns : ROUND_MOST_NS);
}

void _fg_was_away(const struct fg_self *t, uint32_t ns)
{
	if (fg_unlikely(fg_shares_cpu(t)))
		note(&lately.away, ns < ROUND_MOST_NS ? ns : ROUND_MOST_NS);
}

/*
 * How long a line takes that the owner has written last, the one in which it says what it holds.  A
 * second look finds it here, and tells what a look and the clock take by themselves.
 */
static void time_journey(uint32_t owner)
{
	const struct fg_slot *slot = fg_slot_look(fg_id_index(owner));
	uint64_t began = fg_now_ns(), came, again;
	int64_t ns;

	/* What is read decides whether the clock is, so that this is not done first. */
	if (!fg_load_acquire(&slot->pending))
		return;
	came = fg_now_ns();
	if (!fg_load_acquire(&slot->pending))
		return;
	again = fg_now_ns();
	ns = (int64_t)(came - began) - (int64_t)(again - came);
	if (ns < JOURNEY_MOST_NS)
		note(&lately.journey, ns > 0 ? (uint32_t)ns : 0);
}

static bool rounds_are_brief(void)
{
	uint32_t section = fg_load_relaxed(&lately.section), away = fg_load_relaxed(&lately.away);

	return section && away &&
	       section + away <= fg_load_relaxed(&lately.journey) * BRIEF_JOURNEYS;
}

static bool are_the_same_two(uint32_t both)
{
	uint32_t alike = fg_load_relaxed(&lately.alike);

	if (fg_load_relaxed(&lately.both) != both) {
		fg_store_relaxed(&lately.both, both);
		fg_store_relaxed(&lately.alike, 0);
		return false;
	}
	if (alike < ALIKE)
		fg_store_relaxed(&lately.alike, alike + 1);
	return alike == ALIKE;
}

/*
 * Where two threads are at it, and who holds nothing else.  With more of them there is mostly one
 * on a CPU anyway, and the owner loses its own at the very tick at which one that gave way comes:
 * 0.8 with 104 threads beside as many busy ones on 104 CPUs (simulated, short sections, 8 seeds).
 */
bool _fg_gives_way(const struct fg_lock *l, struct fg_self *t, const struct attempt *a,
		   uint32_t word)
{
	uint32_t owner = word & FG_WORD_ID;

	if (fg_likely(!fg_shares_cpu(t)) || fg_policy_now != FG_POLICY_DEFAULT || a->deadline ||
	    fg_load_relaxed(&t->slot->participant) || !fg_id_has_slot(owner) || !fg_has_slot(t) ||
	    locks_announced(t) != 1 || fg_sections || t->role != FG_ROLE_NONE ||
	    fg_load_relaxed(&l->tail))
		return false;
	if (t->times_head == 0) /* its round will be timed, if it gets the lock as the head */
		time_journey(owner);
	if (!are_the_same_two(t->id + owner) || !rounds_are_brief())
		return false;
	fg_set_pending(t, 0); /* as in sleep_on() */
	fg_give_way(t, owner);
	fg_set_pending(t, address(l));
	return true;
}
