// SPDX-License-Identifier: MIT
/* See fair_queue.h. */
#include "monitor/fair_queue.h"

uint64_t fg_fair_queue_tag(struct fg_fair_queue *q, uid_t uid)
{
	uint32_t i = 0;

	while (i < q->nr_users && q->user[i].uid != uid) {
		/*
		 * A user that would start at `now` anyhow need not be known: there are no more
		 * users than packets.
		 */
		if (q->user[i].last < q->now)
			q->user[i] = q->user[--q->nr_users];
		else
			i++;
	}
	if (i == q->nr_users) {
		if (i ==
		    FG_FAIR_QUEUE_USERS) /* packets were dropped whose numbers are still to come */
			return q->now;
		q->nr_users++;
		q->user[i].uid = uid;
		q->user[i].last = q->now;
	} else {
		q->user[i].last = q->user[i].last < q->now ? q->now : q->user[i].last + 1;
	}
	return q->user[i].last;
}

void fg_fair_queue_serve(struct fg_fair_queue *q, uint64_t number)
{
	q->now = number;
}
