/* SPDX-License-Identifier: MIT */
/*
 * The memory of slots and nodes, for the files of this folder that give them to threads.
 * What the client of the monitor asks for is in thread.h.
 */
#ifndef FG_SLOTS_H
#define FG_SLOTS_H

#include "runtime/thread.h"

/* Where threads without index publish; nobody reads it. */
extern struct fg_slot fg_slot_nowhere;

/*
 * The chunk is there now.  False: no memory, or none that may be locked, or no call for it
 * (sys/filter.h).
 */
bool fg_chunk_map(uint32_t chunk);

static inline struct fg_slot *fg_slot_of(uint32_t index)
{
	return &fg_chunks[index / FG_PIECE]->slot[index % FG_PIECE];
}

/*
 * It says now: this thread holds nothing, waits for nothing.  What was counted in it stays
 * (protocol.h).
 */
void fg_slot_clear(struct fg_slot *slot, uint32_t id);

/* The monitor shall know how long the array is that is in use. */
void fg_slots_used_up_to(uint32_t index);

/*
 * Raises *p to `value`.  Sequentially consistent, also where another thread has raised it already:
 * a writer of rwlock_write.c, which looks at all indices below after it has withdrawn the bias,
 * must not miss a thread that has seen the bias after it had raised this.
 */
static inline void fg_raise(uint32_t *p, uint32_t value)
{
	uint32_t have = fg_load_seq_cst(p);

	while (have < value && !__atomic_compare_exchange_n(p, &have, value, true, __ATOMIC_SEQ_CST,
							    __ATOMIC_SEQ_CST))
		;
}

/*
 * In the child of a fork: none of the parent's slots is ours.  `mine`: the index of the thread that
 * forked, or 0.
 */
void fg_slots_after_fork(struct fg_self *t, uint32_t mine);

#endif
