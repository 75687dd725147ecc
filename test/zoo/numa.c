/* SPDX-License-Identifier: MIT */
/*
 * cna hands over to waiters of the owner's NUMA node first, and nobody is lost in its second queue;
 * cohort does so 64 times in a row, and not more often.
 *
 * The library's own objects are part of this program, which plays the waiters.  The CPUs are
 * pretended to be one node, 0.  Argument: cna or cohort (both).
 */
#include "../tools/check.h"

#include <sched.h>
#include <stdlib.h>

#include "zoo/zoo.h"

enum { WAITING, GRANTED, HEAD }; /* as cna.c and cohort.c have them */

#define HAND_OVERS 64 /* cohort.c */

static struct zoo_mutex m;

static struct zoo_node *wait_behind(struct zoo_node *before, struct zoo_node **tail, uint32_t numa)
{
	struct zoo_node *n = zoo_node_get();

	n->next = NULL;
	n->status = WAITING;
	n->other = before->other; /* its node's queue; of no meaning with cna */
	n->extra[0] = numa;
	before->next = n;
	*tail = n;
	return n;
}

static void release(struct zoo_node *owner)
{
	m.node = owner;
	zoo_cna.unlock(&m);
}

/* One release of cna in 65,536 prefers the other nodes: false, and nothing is left behind. */
static bool order_of_cna(void)
{
	struct zoo_node **tail = (struct zoo_node **)&m.s.p[0], *a, *b, *c, *d;

	memset(&m, 0, sizeof(m));
	CHECK(zoo_cna.trylock(&m));
	a = wait_behind(m.node, tail, 1);
	b = wait_behind(a, tail, 2);
	c = wait_behind(b, tail, 0);
	d = wait_behind(c, tail, 1);
	zoo_cna.unlock(&m);
	if (a->status == GRANTED)
		return false;
	CHECK_EQ(c->status, GRANTED); /* a and b are in the second queue */
	release(c);		      /* nobody of node 0 waits any more */
	CHECK_EQ(a->status, GRANTED);
	CHECK_EQ(b->status, WAITING);
	CHECK_EQ(d->status, WAITING);
	release(a);
	if (b->status == GRANTED)
		return false;
	CHECK_EQ(d->status, GRANTED); /* before b */
	release(d);		      /* the queue is empty, the second one is not */
	CHECK_EQ(b->status, GRANTED);
	CHECK(!zoo_cna.trylock(&m));
	release(b);
	CHECK(*tail == NULL);
	CHECK(zoo_cna.trylock(&m));
	zoo_cna.unlock(&m);
	return true;
}

static void bound_of_cohort(void)
{
	struct zoo_node *n[HAND_OVERS + 2], **tail;
	uint32_t called;

	memset(&m, 0, sizeof(m));
	CHECK(zoo_cohort.lock(&m, NULL));
	CHECK(!zoo_cohort.trylock(&m));
	n[0] = m.node;
	tail = (struct zoo_node **)n[0]->other; /* the first word of a node's queue */
	for (int i = 1; i < HAND_OVERS + 2; i++)
		n[i] = wait_behind(n[i - 1], tail, 0);
	called = m.s.u32[1];
	for (int i = 1; i <= HAND_OVERS; i++) {
		zoo_cohort.unlock(&m);
		CHECK_EQ(n[i]->status, GRANTED);
		CHECK_EQ(m.s.u32[1], called);
		m.node = n[i];
	}
	zoo_cohort
	    .unlock(&m); /* the last one draws a number as the head of other nodes' queues does */
	CHECK_EQ(n[HAND_OVERS + 1]->status, HEAD);
	CHECK_EQ(m.s.u32[1], called + 1);
	CHECK(*tail == n[HAND_OVERS + 1]);
}

static void nodes(void)
{
	unsigned cpu, node;
	cpu_set_t one;

	CHECK_EQ(getcpu(&cpu, &node), 0);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(getcpu(&cpu, &node), 0);
	CHECK_EQ(zoo_numa_node(), node); /* by rseq where the kernel has it there */
	setenv("FLEXGUARD_NODES", "0", 1);
	CHECK(zoo_numa_start() != NULL);
	setenv("FLEXGUARD_NODES", "two", 1);
	CHECK(zoo_numa_start() != NULL);
	setenv("FLEXGUARD_NODES", "2", 1);
	CHECK(zoo_numa_start() == NULL);
	CHECK_EQ(zoo_numa_node(), cpu % 2);
	setenv("FLEXGUARD_NODES", "1", 1);
	CHECK(zoo_numa_start() == NULL);
	CHECK_EQ(zoo_numa_node(), 0);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "cna, cohort";

	check_begin(argv[0], 30);
	nodes();
	while (strstr(which, "cna") && !order_of_cna())
		;
	if (strstr(which, "cohort"))
		bound_of_cohort();
	return 0;
}
