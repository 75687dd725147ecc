/* SPDX-License-Identifier: MIT */
/*
 * The barrier: 32 bytes in place of a pthread_barrier_t.
 *
 *   state  arrivals, rounds, and whether somebody sleeps: one word for all (barrier.c;
 *          test/verify/barrier.pml has mutants with more).
 *   left   participants that have left, of all rounds, modulo 2^31, from bit 1 on:
 *          what the count runs over into is lost.  DESTROYER (0): the destroyer
 *          sleeps until the rest have.  The last that a participant touches, so the
 *          memory may be gone once all have.
 */
#ifndef FG_BARRIER_H
#define FG_BARRIER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/decide.h"

struct fg_barrier {
	/* a 64-bit word in the two that are aligned for one: fg_barrier_t is not (barrier.c) */
	uint32_t state[3];
	uint32_t shared; /* glibc's: not 0 if process-shared, and then not ours */
	uint32_t count;
	uint32_t left;
	fg_spin_history history;
	uint8_t unused[7];
};
_Static_assert(sizeof(struct fg_barrier) == 32, "in place of pthread_barrier_t");
_Static_assert(offsetof(struct fg_barrier, shared) == 12, "glibc marks process-shared ones there");

static inline uint64_t *_fg_barrier_state(struct fg_barrier *b)
{
	return (uint64_t *)(((uintptr_t)b->state + sizeof(uint32_t)) & -sizeof(uint64_t));
}

#define FG_BARRIER_LEAVER 2u	      /* one participant, in `left` */
#define FG_BARRIER_MAX	  0x7ffffffeu /* participants, as in glibc */

void _fg_barrier_init(struct fg_barrier *b, uint32_t count);
/* True for one of the participants of each round: the last one. */
bool _fg_barrier_wait(struct fg_barrier *b);
/*
 * Waits for participants of the last round that are on their way out.  No round may be under way.
 */
void _fg_barrier_destroy(struct fg_barrier *b);

#endif
