/* SPDX-License-Identifier: MIT */
/*
 * The queue of the Shuffle lock alone: heads leave it and come back at its end, all of one node but
 * one waiter.  The head moves its own node's waiters up, and that one's turn comes all the same.
 */
#define zoo_shuffle of_this_file /* the library has its own */
#include "../../src/zoo/shuffle.c"

#include <stdio.h>
#include <stdlib.h>

#define MOST 31u

static struct zoo_node node[MOST + 1];

static uint32_t turn_of_the_other(uint32_t of_one)
{
	struct zoo_node *head = &node[0], *tail = &node[0], *me;
	uint32_t turns;

	for (uint32_t i = 0; i <= of_one; i++) {
		/* second in the queue, so that it is always there to be passed */
		node[i] = (struct zoo_node){.status = ZOO_WAITING, .extra = {i == 1}};
		if (i) {
			tail->next = &node[i];
			tail = &node[i];
		}
	}
	for (turns = 0; head != &node[1] && turns < 100 * SHUFFLE_MAX; turns++) {
		shuffle(head);
		me = head;
		head = me->next;
		hand_on(me, head);
		me->next = NULL;
		me->status = ZOO_WAITING;
		*row_of(me) = 0;
		tail->next = me;
		tail = me;
	}
	return turns;
}

int main(void)
{
	static const uint32_t others[] = {3, 4, 8, 30};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		uint32_t turns = turn_of_the_other(others[i]);

		printf("%u waiters of one node: %u turns before that of another\n", others[i],
		       turns);
		/* In a row, and those that are in the queue by then. */
		if (turns > SHUFFLE_MAX + others[i])
			return 1;
	}
	return 0;
}
