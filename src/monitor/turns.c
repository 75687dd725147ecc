// SPDX-License-Identifier: MIT
/* See turns.h. */
#include "monitor/turns.h"

uint64_t fg_turn_take(struct fg_turns *t, uid_t uid)
{
	uint32_t i = 0;

	while (i < t->nr_users && t->user[i].uid != uid) {
		/*
		 * A user that would start at `now` anyhow need not be known: there are no more
		 * users than packets.
		 */
		if (t->user[i].last < t->now)
			t->user[i] = t->user[--t->nr_users];
		else
			i++;
	}
	if (i == t->nr_users) {
		if (i == FG_TURNS_USERS) /* packets were dropped whose numbers are still to come */
			return t->now;
		t->nr_users++;
		t->user[i].uid = uid;
		t->user[i].last = t->now;
	} else {
		t->user[i].last = t->user[i].last < t->now ? t->now : t->user[i].last + 1;
	}
	return t->user[i].last;
}

void fg_turn_serve(struct fg_turns *t, uint64_t number)
{
	t->now = number;
}
