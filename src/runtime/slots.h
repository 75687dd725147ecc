/* SPDX-License-Identifier: MIT */
/*
 * The memory of slots and nodes, for the files of this folder that give them to threads.
 * What the client of the monitor asks for is in thread.h.
 */
#ifndef FG_SLOTS_H
#define FG_SLOTS_H

#include "runtime/thread.h"

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

/*
 * The next index that no thread has had, its chunk mapped: fg_threads_highest() counts it from now
 * on.  0: there is none, or no memory for it.
 */
uint32_t fg_slots_next(void);

/* The monitor is told how long the array in use is. */
void fg_slots_used_up_to(uint32_t index);

/*
 * In the child of a fork: none of the parent's slots is ours.  `mine`: the index of the thread that
 * forked, or 0.
 */
void fg_slots_after_fork(struct fg_self *t, uint32_t mine);

#endif
