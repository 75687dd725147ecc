/* SPDX-License-Identifier: MIT */
/* Links between the nodes of a queue (queue.h): what queue.c and near.c share. */
#ifndef FG_LINKS_H
#define FG_LINKS_H

#include "lock/queue.h"
#include "runtime/decide.h"

/*
 * A node's number is thread index * FG_NODE_STEP + k; index 0 is nobody's, so 0 can
 * mean "none".  The tail has the epoch in front: after a fork the child's copy
 * of a queue names nodes of threads that it does not have.
 */
#define NODE_BITS  18
#define EPOCH_MASK ((1u << (32 - NODE_BITS)) - 1)
#define FG_NODE_HANDED \
	0xffffffffu /* in `next`: the owner has left; the thread that links here is the head */
_Static_assert(FG_MAX_THREADS *FG_NODE_STEP == 1u << NODE_BITS, "node numbers fit into the tail");

/*
 * A node's `next` names the successor, says where that one is (enum fg_near), and how often others
 * came past it while it was the first; each microsecond after the first that it waited for one of
 * them counts as LINK_PASSED_US more.
 */
#define LINK_NODE	((1u << NODE_BITS) - 1)
#define LINK_NEAR_SHIFT NODE_BITS
#define LINK_PASSED	(1u << (NODE_BITS + 8))
#define LINK_PASSED_MAX 62u /* 63 would be FG_NODE_HANDED */
/*
 * With sections of 5 us three come past.  With 1 and 2 in its place, twelve and six, the longest
 * waits are a third and a sixth longer, and there are 0.3 % more sections
 * (docs/design/many-cpus.md, "Near first").
 */
#define LINK_PASSED_US 4u

static inline struct fg_node *node_at(uint32_t n)
{
	n &= LINK_NODE;
	return &fg_thread_of(n / FG_NODE_STEP)->node[n % FG_NODE_STEP];
}

/* Where the calling thread is (enum fg_near).  False, and 0, if that is not known. */
static inline bool find_near(const struct fg_self *t, uint32_t *near)
{
	uint32_t cpu = fg_load_relaxed(t->cpu);

	*near = 0;
	if (cpu >= FG_MAX_CPUS || !fg_policy_has_monitor())
		return false;
	*near = fg_load_relaxed(&fg_load_relaxed(&fg_counters)->near[cpu]) &
		(FG_NEAR_NODE | FG_NEAR_CACHE);
	return true;
}

static inline uint32_t tail_of(uint32_t n)
{
	return (fg_epoch & EPOCH_MASK) << NODE_BITS | n;
}

static inline uint32_t state_of(uint32_t state)
{
	return state & FG_NODE_STATE_MASK;
}

static inline uint32_t with_state(uint32_t state, enum fg_node_state s)
{
	return (state & ~FG_NODE_STATE_MASK) | s;
}

/* No longer in the child of a fork that a signal handler made: all nodes are new there. */
static inline bool is_head(uint32_t n)
{
	return state_of(fg_load_relaxed(&node_at(n)->state)) == FG_NODE_HEAD;
}

/*
 * To what is behind the node `n`, by who has its role: first of all what that has left aside
 * (near.c).  0: nobody, or one that has not linked yet; then some may be aside still, but not if it
 * has to be.  `l`: as in pass_on().
 */
uint32_t _fg_queue_put_back(struct fg_lock *l, uint32_t n, bool has_to_be);

/* The same for an owner, which gives both to that one: a near one, if it may be. */
uint32_t _fg_queue_choose(struct fg_lock *l, struct fg_self *t, uint32_t n);

#endif
