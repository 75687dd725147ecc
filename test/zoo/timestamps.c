/* SPDX-License-Identifier: MIT */
/*
 * mcs-tp: a waiter that has published its time after the owner has read the clock is on a CPU, and
 * gets the lock; one whose time is old is passed over.
 *
 * The library's own objects are part of this program, which plays the waiters.
 */
#include "../tools/check.h"

#include "zoo/zoo.h"

enum { WAITING, GRANTED, PASSED_OVER }; /* as mcstp.c has them */

#define SECOND 1000000000ull

static struct zoo_mutex m;

static struct zoo_node *wait_behind(struct zoo_node *before, uint64_t time)
{
	struct zoo_node *n = zoo_node_get();

	n->next = NULL;
	n->status = WAITING;
	n->time[0] = time;
	before->next = n;
	m.s.p[0] = n; /* the tail */
	return n;
}

int main(int argc, char **argv)
{
	struct zoo_node *old, *new;

	check_begin(argv[0], 30);
	CHECK(zoo_mcstp.trylock(&m));
	old = wait_behind(m.node, fg_now_ns() - SECOND);
	new = wait_behind(old, fg_now_ns() + SECOND);
	zoo_mcstp.unlock(&m);
	CHECK_EQ(old->status, PASSED_OVER);
	CHECK_EQ(new->status, GRANTED);
	return 0;
}
