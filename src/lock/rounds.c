/* SPDX-License-Identifier: MIT */
#include "lock/rounds.h"

/*
 * Between the rounds of the FlexGuard paper's loop, which gain (0.6x of glibc becomes 2.1x), and
 * those with sections of 1 us, which do not (2-CPU VM, Linux 6.18; docs/design/experiments.md,
 * "Backoff of the head").  With 600 in its place two threads on two sockets never learn that theirs
 * are short, since the lines take 540 ns; with 1500 sections of 500 ns lose a tenth.
 */
#define SHORT_ROUND_NS 1000u

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
	return (uint16_t)(address(l) / sizeof(uint64_t));
}

void _fg_round_begins(const struct fg_lock *l, struct fg_self *t)
{
	struct fg_thread *me;

	if (t->times_head++ || !fg_id_has_slot(t->id))
		return;
	me = fg_thread_mine(t);
	me->round_began = coarse_clock();
	me->round_of = part_of_address(l);
	t->round_is_timed = 1;
}

/*
 * Past other locks it goes on: a lock that threads leave for others lies free while its head keeps
 * away from it.
 */
void _fg_round_ends(const struct fg_lock *l, struct fg_self *t)
{
	const struct fg_thread *me = fg_thread_mine(t);
	uint32_t ns = (uint16_t)(coarse_clock() - me->round_began) * FG_ROUND_UNIT_NS;

	if (ns <= SHORT_ROUND_NS && me->round_of != part_of_address(l))
		return;
	_fg_round_took(t, ns);
	t->round_is_timed = 0;
}

void _fg_round_took(struct fg_self *t, uint32_t ns)
{
	if (ns > SHORT_ROUND_NS)
		t->short_rounds -= t->short_rounds > 0;
	else
		t->short_rounds += t->short_rounds < 3;
}
