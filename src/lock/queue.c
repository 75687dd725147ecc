/* SPDX-License-Identifier: MIT */
#include "lock/queue.h"

#include "lock/held.h"
#include "lock/links.h"

#define GIVES	    2u /* what an owner adds to the state of the node behind it */
#define INCARNATION 8u /* one step of it in fg_node.state */

static bool node_cas(struct fg_node *node, uint32_t from, enum fg_node_state to)
{
	return fg_cas_acq_rel(&node->state, &from, with_state(from, to));
}

/* Release: whoever re-uses the node (alloc's acquire) sees that we are done with it. */
static void node_free(struct fg_node *node)
{
	fg_store_release(&node->state, with_state(fg_load_relaxed(&node->state), FG_NODE_FREE));
}

/*
 * A node of ours that nobody refers to, marked busy.  First busy, then the look
 * at its state: a signal handler in between may use and leave behind another
 * node, but not this one.
 */
static uint32_t node_alloc(struct fg_self *t)
{
	struct fg_thread *me;
	uint32_t k;

	if (!fg_id_has_slot(t->id))
		return 0;
	me = fg_thread_mine(t);
	for (k = 0; k < FG_NODES; k++) {
		if (me->nodes_used & 1u << k)
			continue;
		me->nodes_used |= 1u << k;
		fg_fence_local();
		if (state_of(fg_load_acquire(&me->node[k].state)) == FG_NODE_FREE)
			return fg_id_index(t->id) * FG_NODE_STEP + k;
		me->nodes_used &= ~(1u << k);
	}
	return 0;
}

static void is_used_no_longer(uint32_t n)
{
	fg_thread_of(n / FG_NODE_STEP)->nodes_used &= ~(1u << n % FG_NODE_STEP);
}

static void node_drop(struct fg_self *t, uint32_t n)
{
	fg_set_role(t, FG_ROLE_NONE);
	is_used_no_longer(n);
}

static void become_head(struct fg_self *t, struct fg_node *node)
{
	fg_store_relaxed(&node->state, with_state(fg_load_relaxed(&node->state), FG_NODE_HEAD));
	fg_set_role(t, FG_ROLE_HEAD);
}

uint32_t _fg_queue_join(struct fg_lock *l, struct fg_self *t, uint32_t *behind)
{
	uint32_t n = node_alloc(t), before, pred_number, near;
	struct fg_node *node;

	*behind = 0;
	if (!n)
		return 0;
	node = node_at(n);
	fg_store_relaxed(&node->next, 0);
	fg_store_relaxed(&node->aside, 0);
	fg_store_relaxed(&fg_thread_mine(t)->notice, FG_NOTICE_NONE);
	fg_store_relaxed(&node->state, with_state(node->state + INCARNATION, FG_NODE_WAITING));
	fg_set_role(t, FG_ROLE_LINKING); /* first: a signal handler's wait puts both back */
	fg_fence_local();
	fg_store_relaxed(&t->slot->node, (uint64_t)(uintptr_t)&node->state);

	/* Release: the node is ready.  Acquire: so is the predecessor's. */
	before = fg_xchg_acq_rel(&l->tail, tail_of(n));
	pred_number = before & LINK_NODE;
	/*
	 * Of another epoch, or no node of ours at all (a file that another process wrote): empty.
	 */
	if (!before || before >> NODE_BITS != (fg_epoch & EPOCH_MASK) ||
	    !fg_thread_was(pred_number / FG_NODE_STEP)) {
		become_head(t, node);
	} else {
		struct fg_node *pred = node_at(pred_number);

		find_near(t, &near);
		if (fg_xchg_acq_rel(&pred->next, n | near << LINK_NEAR_SHIFT) == FG_NODE_HANDED) {
			node_free(pred); /* its owner left the role here for us */
			become_head(t, node);
		} else {
			*behind = pred_number;
			fg_set_role(t, FG_ROLE_WAITING);
		}
	}
	return n;
}

bool _fg_queue_still_waits(uint32_t before)
{
	return state_of(fg_load_relaxed(&node_at(before)->state)) == FG_NODE_WAITING;
}

enum fg_queue_poll _fg_queue_poll(struct fg_self *t, uint32_t n)
{
	struct fg_node *node = node_at(n);
	uint32_t state = fg_load_acquire(&node->state);

	if (fg_likely(state_of(state) == FG_NODE_WAITING))
		return FG_QUEUE_WAIT;
	if (state_of(state) == FG_NODE_HEAD)
		return FG_QUEUE_GIVEN;
	if (state_of(state) == FG_NODE_GRANTED && node_cas(node, state, FG_NODE_HEAD)) {
		fg_set_role(t, FG_ROLE_HEAD);
		return FG_QUEUE_HEAD;
	}
	/* Skipped, revoked, or reset by a fork under us.  The node is no longer ours to touch. */
	node_drop(t, n);
	return FG_QUEUE_LOST;
}

enum fg_queue_poll _fg_queue_leave(struct fg_self *t, uint32_t n)
{
	struct fg_node *node = node_at(n);
	uint32_t state = fg_load_relaxed(&node->state);

	while (state_of(state) == FG_NODE_WAITING) {
		if (node_cas(node, state, FG_NODE_LEFT)) {
			node_drop(t, n);
			return FG_QUEUE_LOST;
		}
		state = fg_load_relaxed(&node->state);
	}
	return _fg_queue_poll(t, n);
}

void _fg_queue_leave_below(const struct fg_self *t)
{
	for (uint32_t k = 0; k < FG_NODES; k++) {
		struct fg_node *node = &fg_thread_mine(t)->node[k];
		uint32_t state = fg_load_relaxed(&node->state);

		if (state_of(state) == FG_NODE_WAITING)
			node_cas(node, state, FG_NODE_LEFT);
	}
}

bool _fg_queue_has_next(uint32_t n, struct fg_successor *behind)
{
	if (!behind->next)
		behind->next = fg_load_acquire(&node_at(n)->next);
	return behind->next;
}

void _fg_queue_look_behind(uint32_t n, struct fg_successor *behind)
{
	if (_fg_queue_has_next(n, behind) && !behind->more) {
		struct fg_node *node = node_at(behind->next);

		behind->state = fg_load_acquire(&node->state);
		behind->more = fg_load_relaxed(&node->next) != 0;
	}
}

/*
 * The one that is granted the role now has been brought past the first waiter, and that one has
 * waited for long: it counts as several.  Before the grant, while the links are still ours.
 */
static void count_time(uint32_t n, uint32_t us)
{
	uint32_t link = fg_load_relaxed(&node_at(n)->next), passed = link / LINK_PASSED, more;

	if (us < 2 || !passed || passed >= LINK_PASSED_MAX)
		return;
	more = LINK_PASSED_MAX - passed;
	if (us - 1 < more / LINK_PASSED_US)
		more = (us - 1) * LINK_PASSED_US;
	fg_store_relaxed(&node_at(n)->next, link + more * LINK_PASSED);
}

/* True if the successor waits and runs, and is the head from now on. */
static bool grant(uint32_t n, uint32_t state, enum fg_notice notice)
{
	struct fg_node *node = node_at(n);

	if (state_of(state) != FG_NODE_WAITING)
		return false;
	if (fg_is_off_cpu(n / FG_NODE_STEP)) {
		/* On failure it has left by itself: LEFT, ours to reclaim as well. */
		node_cas(node, state, FG_NODE_LEFT);
		return false;
	}
	if (notice != FG_NOTICE_NONE) /* a hint, also to one that is not here any more */
		fg_store_relaxed(&fg_thread_of(n / FG_NODE_STEP)->notice, (uint8_t)notice);
	if (!node_cas(node, state, FG_NODE_GRANTED))
		return false;
	/* Dekker with the monitor: it sets "off" and then looks at the state. */
	fg_fence_seq_cst();
	return !fg_is_off_cpu(n / FG_NODE_STEP) ||
	       !node_cas(node, with_state(state, FG_NODE_GRANTED), FG_NODE_LEFT);
}

/* To tell the new head when this lock is released: FG_NOTICE_FREE. */
static void promise(struct fg_thread *me, const struct fg_lock *l, uint32_t index)
{
	/* In this order: a signal handler in between makes no promise of its own. */
	me->notifies = (uint16_t)index;
	fg_fence_local();
	me->notifies_of = part_of_address(address(l));
}

static uint32_t put_back(struct fg_lock *l, uint32_t n)
{
#ifdef FG_BROKEN_ASIDE /* a test proves that the tests notice */
	return fg_load_acquire(&node_at(n)->next);
#endif
	return _fg_queue_put_back(l, n, true);
}

/*
 * Walks to the first successor that waits and runs.  Each node passed is FREE
 * for its owner from then on and not touched again.  `l`: NULL if it may be gone, and who joins
 * next finds the role.
 */
static void pass_on(struct fg_lock *l, struct fg_self *t, uint32_t n,
		    const struct fg_successor *behind)
{
	uint32_t at = n, next = put_back(l, n), state = 0;
	bool is_out = is_head(n); /* or it is behind those that were aside */

	if (next == behind->next)
		state = behind->state;

	for (;;) {
		struct fg_node *here = node_at(at);

		if (!next)
			next = fg_load_acquire(&here->next);
		if (!next) {
			uint32_t tail = tail_of(at), none = 0;

			if (l && fg_cas_acq_rel(&l->tail, &tail, 0)) {
				node_free(here);
				break;
			}
			/* Somebody has joined and not linked yet.  Do not wait for it. */
			if (fg_cas_acq_rel(&here->next, &none, FG_NODE_HANDED))
				break;
			next = none;
		}
		if (is_out)
			node_free(here);
		is_out = true;
		at = next & LINK_NODE;
		if (state_of(state) != FG_NODE_WAITING)
			state = fg_load_acquire(&node_at(at)->state);
		count_time(at, behind->waited_us);
		if (grant(at, state, behind->notice)) {
			if (behind->notice != FG_NOTICE_NONE)
				promise(fg_thread_mine(t), l, at / FG_NODE_STEP);
			break;
		}
		next = state = 0;
	}
}

void _fg_queue_hand_over(struct fg_lock *l, struct fg_self *t, uint32_t n,
			 const struct fg_successor *behind)
{
	/* Not after a fork in between, in a signal handler: the queue is empty. */
	if (is_head(n))
		pass_on(l, t, n, behind);
	node_drop(t, n);
}

bool _fg_may_be_given(uint32_t index)
{
	return index < fg_load_relaxed(&fg_slots_seen) && !fg_is_off_cpu(index);
}

bool _fg_queue_keep(uint32_t n)
{
	struct fg_node *node = node_at(n);

	if (!is_head(n)) { /* a fork in between, in a signal handler */
		is_used_no_longer(n);
		return false;
	}
	/* Release: another thread that passes the role on sees what is aside. */
	fg_store_release(&node->state, with_state(fg_load_relaxed(&node->state), FG_NODE_KEPT));
	return true;
}

/* By its thread, or by one that releases the lock for it: one of them. */
static bool is_kept_no_longer(uint32_t n)
{
	struct fg_node *node = node_at(n);
	uint32_t state = fg_load_relaxed(&node->state);

	return state_of(state) == FG_NODE_KEPT && node_cas(node, state, FG_NODE_HEAD);
}

/*
 * Blindly, by one access: what is behind a head is WAITING or LEFT, and stays there until the head
 * has gone past it.
 */
static bool give_behind(struct fg_lock *l, struct fg_self *t, uint32_t n)
{
	uint32_t next = _fg_queue_choose(l, t, n), to = next & LINK_NODE, state;
	uint64_t aside;

	_Static_assert(FG_NODE_WAITING + GIVES == FG_NODE_HEAD, "given");
	_Static_assert(FG_NODE_LEFT + GIVES == FG_NODE_LEFT_TWICE, "in vain");
#ifdef FG_BROKEN_GIVEN /* a test proves that the tests notice */
	if (next)
		fg_add_acq_rel(&node_at(to)->state, GIVES);
	return next;
#endif
	if (!next || !_fg_may_be_given(to / FG_NODE_STEP))
		return false;
	aside = fg_load_relaxed(&node_at(n)->aside);
	if (aside)
		fg_store_relaxed(&node_at(to)->aside, aside);
	state = state_of(fg_add_acq_rel(&node_at(to)->state, GIVES));
	if (state != FG_NODE_WAITING) {
		/*
		 * It stays in the queue, perhaps behind those that were aside, and may be given to
		 * once more.  Or a fork in between: it is of a thread that is not here.
		 */
		fg_add_relaxed(&node_at(to)->state, -GIVES);
		return false;
	}
	node_free(node_at(n));
	return true;
}

bool _fg_queue_give(struct fg_lock *l, struct fg_self *t, uint32_t n, bool lock_as_well)
{
	const struct fg_successor unknown = {0};
	bool given = false;

	if (is_kept_no_longer(n)) {
		/* Nobody else passes it on: if this thread ends now, leave_at_end() does. */
		fg_thread_mine(t)->kept = 0;
		fg_fence_local();
		given = lock_as_well && give_behind(l, t, n);
		if (!given)
			pass_on(l, t, n, &unknown);
	}
	is_used_no_longer(n);
	return given;
}

void _fg_queue_pass_on(struct fg_lock *l, struct fg_self *t, uint32_t n)
{
	const struct fg_successor unknown = {0};

	if (is_kept_no_longer(n))
		pass_on(l, t, n, &unknown);
}

void _fg_queue_forget(uint32_t n)
{
	if (is_kept_no_longer(n))
		node_free(node_at(n));
	is_used_no_longer(n);
}

/* A node that is still in a queue is never used again. */
void _fg_queue_lost(uint32_t n)
{
	if (state_of(fg_load_relaxed(&node_at(n)->state)) != FG_NODE_KEPT)
		is_used_no_longer(n);
}

/* Of one that waits, or that is the head and has not passed that on. */
static void leave_at_end(struct fg_self *t, uint32_t n)
{
	const struct fg_successor unknown = {0};
	struct fg_node *node = node_at(n);
	uint32_t state = fg_load_acquire(&node->state);

	while (state_of(state) == FG_NODE_WAITING && !node_cas(node, state, FG_NODE_LEFT))
		state = fg_load_acquire(&node->state);
	if (state_of(state) == FG_NODE_GRANTED)
		node_cas(node, state, FG_NODE_HEAD);
	/* Not by fg_thread.kept: it was about to pass the role on. */
	if (state_of(state) == FG_NODE_KEPT && !node_cas(node, state, FG_NODE_HEAD))
		return;
	if (is_head(n) && fg_load_relaxed(&node->next) != FG_NODE_HANDED)
		pass_on(NULL, t, n, &unknown);
}

void _fg_queue_thread_ends(struct fg_self *t)
{
	for (uint32_t k = 0; k < FG_NODES; k++)
		/* A kept one: settle_at_end(), since another thread may be passing it on. */
		if (fg_thread_mine(t)->nodes_used & 1u << k && fg_thread_mine(t)->kept != k + 1)
			leave_at_end(t, fg_id_index(t->id) * FG_NODE_STEP + k);
}
