/* SPDX-License-Identifier: MIT */
#include "lock/rounds.h"

/*
 * Between the rounds of the FlexGuard paper's loop, which gain (0.6x of glibc becomes 2.1x), and
 * those with sections of 1 us, which do not (2-CPU VM, Linux 6.18; docs/design/experiments.md,
 * "Backoff of the head").  Not varied.
 */
#define SHORT_ROUND_NS 600u

/* One round in so many is timed.  Not varied. */
#define TIMED_EVERY 16u
_Static_assert(TIMED_EVERY == 16, "fg_self.times_head wraps there");

void _fg_round_begins(struct fg_self *t)
{
	if (t->times_head++ || !fg_id_has_slot(t->id))
		return;
	fg_thread_mine(t)->round_began_ns = round_clock();
	t->round_is_timed = 1;
}

void _fg_round_took(struct fg_self *t, uint32_t ns)
{
	if (ns > SHORT_ROUND_NS)
		t->short_rounds -= t->short_rounds > 0;
	else
		t->short_rounds += t->short_rounds < 3;
}
