/* SPDX-License-Identifier: MIT */
/*
 * Near first: who of those that wait in a queue comes next, by where they are.  A head that waits
 * puts the queue in order ahead of its turn (_fg_queue_bring_near).  Where owners give the lock on
 * (offer.h) nobody waits as the head, and an owner chooses (_fg_queue_choose).  Both within bounds.
 */
#include "lock/links.h"

/* Nodes that a head looks at behind its successor. */
#define WALK_MAX 16u

/*
 * An owner that gives looks at so many behind its own node, and leaves some aside for so many gifts
 * at most.  Each look is a journey of a line, with the lock in hand.  Where some are aside already,
 * those behind them are mostly near.  Where nobody is, and the lock has gone from one to the next
 * of this socket ASIDE_LATER times, those who wait stand in rows anyway, and four looks mostly find
 * nobody (docs/design/many-cpus.md, "Near first along a chain of gifts").
 */
#define ASIDE_LOOKS	  4u
#define ASIDE_LOOKS_LATER 1u
#define ASIDE_LATER	  5u
#define ASIDE_MOST	  16u

/*
 * fg_node.aside: the link to the first, the number of the last, and how many gifts have gone past
 * them; without a link nobody, and how many have gone from one to the next of this socket.
 */
#define ASIDE_LAST_SHIFT 32
#define ASIDE_GIFT	 (1ull << (ASIDE_LAST_SHIFT + NODE_BITS))

/* Of two links, is the first nearer to `mine`? */
static bool is_nearer(uint32_t a, uint32_t b, uint32_t mine)
{
	a = a >> LINK_NEAR_SHIFT ^ mine;
	b = b >> LINK_NEAR_SHIFT ^ mine;
	if ((a ^ b) & FG_NEAR_NODE)
		return !(a & FG_NEAR_NODE) && (b & FG_NEAR_NODE);
	return !(a & (FG_NEAR_NODE | FG_NEAR_CACHE)) && (b & FG_NEAR_CACHE);
}

/* A link, from the thread that is at `mine`: to another cache? */
static bool is_far(uint32_t link, uint32_t mine)
{
	return (link >> LINK_NEAR_SHIFT ^ mine) & (FG_NEAR_NODE | FG_NEAR_CACHE);
}

/* The same: on another node. */
static bool is_away(uint32_t link, uint32_t mine)
{
	return (link >> LINK_NEAR_SHIFT ^ mine) & FG_NEAR_NODE;
}

bool _fg_queue_next_is_far(const struct fg_self *t, uint32_t n)
{
	uint32_t next = fg_load_relaxed(&node_at(n)->next), mine;

	return find_near(t, &mine) && next && is_far(next, mine);
}

/*
 * Only a head changes links that stand, and only to nodes that have a successor themselves: nobody
 * else writes to those.
 */
void _fg_queue_bring_near(struct fg_self *t, uint32_t n, struct fg_successor *behind)
{
	uint32_t mine, first = behind->next, link, next;

	if (!first || behind->walked == WALK_MAX || first / LINK_PASSED >= LINK_PASSED_MAX)
		return;
	find_near(t, &mine);
	if (!is_far(first, mine))
		return;
	if (!behind->before)
		behind->before = first & LINK_NODE;
	link = fg_load_acquire(&node_at(behind->before)->next);
	if (!link)
		return;
	next = fg_load_acquire(&node_at(link)->next);
	if (!next)
		return;
	behind->walked++;
	if (!is_nearer(link, first, mine) ||
	    state_of(fg_load_relaxed(&node_at(link)->state)) != FG_NODE_WAITING) {
		behind->before = link & LINK_NODE;
		return;
	}
	if (!is_head(n))
		return;
	fg_store_relaxed(&node_at(behind->before)->next, next);
	fg_store_relaxed(&node_at(link)->next, first + LINK_PASSED);
	fg_store_relaxed(&node_at(n)->next, link);
	behind->next = link;
	behind->state = 0;
	behind->more = false;
}

static bool is_anybody(uint64_t aside)
{
	return (uint32_t)aside;
}

static uint32_t last_of(uint64_t aside)
{
	return (uint32_t)(aside >> ASIDE_LAST_SHIFT) & LINK_NODE;
}

/*
 * At the end of the queue the last of them is the end from now on.  But if somebody has joined, and
 * not linked yet, that one links to this node: if it has to be, it stays, behind them, as one that
 * has left.
 */
uint32_t _fg_queue_put_back(struct fg_lock *l, uint32_t n, bool has_to_be)
{
	struct fg_node *node = node_at(n), *last;
	uint32_t next = fg_load_acquire(&node->next), tail = tail_of(n), end, state;
	uint64_t aside = fg_load_relaxed(&node->aside);
	bool behind;

	if (fg_likely(!is_anybody(aside)))
		return next;
	last = node_at(last_of(aside));
	end = (tail & ~LINK_NODE) | last_of(aside); /* of one epoch, if a signal handler forks */
	fg_store_relaxed(&last->next, next);
	behind = !next && (!l || !fg_cas_acq_rel(&l->tail, &tail, end));
	if (behind && !has_to_be)
		return 0;
	/* First: one that ends here loses some of the queue, and ties no knot in it. */
	fg_store_relaxed(&node->aside, 0);
	fg_fence_local();
	if (behind) {
		fg_store_relaxed(&last->next, n);
		state = fg_load_relaxed(&node->state);
		if (state_of(state) == FG_NODE_HEAD) /* not after a fork */
			fg_cas_relaxed(&node->state, &state, with_state(state, FG_NODE_LEFT));
	} else {
		fg_store_relaxed(&node->next, (uint32_t)aside);
	}
	return (uint32_t)aside;
}

/* From the one that `first` leads to, to `last`: behind those that are aside. */
static uint64_t leave_aside(uint64_t aside, uint32_t first, uint32_t last)
{
	if (aside) {
		fg_store_relaxed(&node_at(last_of(aside))->next, first);
		aside &= ~((uint64_t)LINK_NODE << ASIDE_LAST_SHIFT);
	} else {
		aside = first;
	}
	return aside | (uint64_t)last << ASIDE_LAST_SHIFT;
}

/*
 * Those of another node that are before the first near one wait aside, so that nobody looks at them
 * twice, and the one that is given the lock has them in its own node.  This is the secondary queue
 * of CNA (Dice, Kogan, "Compact NUMA-aware Locks", EuroSys 2019).  They come back to the front when
 * no near one is in sight, when gifts have gone past them for long enough, and wherever the role is
 * passed on without the lock.
 */
uint32_t _fg_queue_choose(struct fg_lock *l, struct fg_self *t, uint32_t n)
{
	struct fg_node *node = node_at(n);
	uint32_t next = fg_load_acquire(&node->next), at = next & LINK_NODE, link, mine;
	uint64_t aside = fg_load_relaxed(&node->aside), gifts = aside / ASIDE_GIFT;
	uint32_t most = ASIDE_LOOKS;

	if (!find_near(t, &mine) || (is_anybody(aside) && gifts >= ASIDE_MOST))
		return _fg_queue_put_back(l, n, false);
	if (next && !is_away(next, mine)) {
		if (gifts < ASIDE_MOST)
			fg_store_relaxed(&node->aside, aside + ASIDE_GIFT);
		return next;
	}
	if (gifts && !is_anybody(aside)) {
		if (gifts >= ASIDE_LATER)
			most = ASIDE_LOOKS_LATER;
		aside = 0;
		fg_store_relaxed(&node->aside, 0);
	}
	for (uint32_t looks = 0; at && looks < most; looks++) {
		/* One without a successor stays: who joins links there. */
		link = fg_load_acquire(&node_at(at)->next);
		if (!link)
			break;
		if (!is_away(link, mine)) {
			/* In this order, as in _fg_queue_put_back(). */
			fg_store_relaxed(&node->next, link);
			fg_fence_local();
			fg_store_relaxed(&node->aside, leave_aside(aside, next, at) + ASIDE_GIFT);
			return link;
		}
		at = link & LINK_NODE;
	}
	return _fg_queue_put_back(l, n, false);
}
