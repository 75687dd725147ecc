/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is the thread that leaves its CPU on the critical path of a lock?  It is current, so its memory
 * can be read.
 */
#ifndef FG_CRITICAL_H
#define FG_CRITICAL_H

#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include "../src/abi/protocol.h"
#include "once.h"

/* Set by the loader, once. */
const volatile bool mcs_test = false; /* judge threads with role MCS by their queue */

static __always_inline __u32 read_user_u32(__u64 address)
{
	__u32 value = 0;

	/* A fault leaves 0: unmapped memory is nobody's lock (case 19). */
	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* The holder test that is documented at struct fg_mcs_node: three looks into the queue. */
__noinline int owns_mcs_lock(__u64 tail, __u64 node)
{
	struct fg_mcs_node me, next;
	__u64 last;

	if (bpf_probe_read_user(&me, sizeof(me), (void *)node) || me.status == FG_MCS_WAITING ||
	    bpf_probe_read_user(&last, sizeof(last), (void *)tail))
		return 0;
	if (last == node)
		return 1;
	return me.next && !bpf_probe_read_user(&next, sizeof(next), (void *)me.next) &&
	       next.status == FG_MCS_WAITING;
}

/* The test that is documented at struct fg_slot.  The slot's thread is current. */
static __always_inline bool is_critical(struct fg_slot *slot)
{
	__u64 pending = READ_ONCE(slot->pending);
	__u32 role = READ_ONCE(slot->role) & FG_ROLE_MASK;
	__u32 id = READ_ONCE(slot->owner_id);
	__u32 state, barrier = 0;

	if (mcs_test && role == FG_ROLE_MCS)
		return owns_mcs_lock(pending, READ_ONCE(slot->node));
	if (READ_ONCE(slot->cs) || READ_ONCE(slot->sections))
		return true;
	if (role == FG_ROLE_LINKING || role == FG_ROLE_HEAD)
		return true;
	/*
	 * Not of one that waits, which takes the word in another role: all want that line.  No word
	 * is owned by id 0: that is what a free one holds.
	 */
	if (role != FG_ROLE_WAITING)
		return pending && id && (read_user_u32(pending) & FG_WORD_ID) == id;
	/*
	 * Dekker with grant() of src/lock/queue.c: slot->state says that this thread is off its
	 * CPU, before the look at its node.  A full barrier.
	 */
	__sync_lock_test_and_set(&barrier, 0);
	state = read_user_u32(READ_ONCE(slot->node)) & FG_NODE_STATE_MASK;
	return state == FG_NODE_GRANTED || state == FG_NODE_HEAD;
}

#endif
