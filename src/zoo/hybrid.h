/* SPDX-License-Identifier: MIT */
/* The pair (hybrid.c), its sides (hybrid_sides.c, pair.c) and its condition variable (cond.c). */
#ifndef FG_ZOO_HYBRID_H
#define FG_ZOO_HYBRID_H

#include "zoo/zoo.h"

enum { SPIN, BLOCK };

#define STATE_CURR 1u
#define STATE_LAST 2u

struct side {
	/* False: switched away from this side while waiting; never if `stay`. */
	bool (*lock)(struct zoo_mutex *m, bool stay);
	bool (*trylock)(struct zoo_mutex *m);
	void (*unlock)(struct zoo_mutex *m);
};

static inline uint32_t *state_of(struct zoo_mutex *m)
{
	return &m->s.u32[0];
}

static inline int curr_of(uint32_t state)
{
	return state & STATE_CURR ? BLOCK : SPIN;
}

static inline int last_of(uint32_t state)
{
	return state & STATE_LAST ? BLOCK : SPIN;
}

static inline bool switched_away(struct zoo_mutex *m)
{
	return curr_of(fg_load_relaxed(state_of(m))) != SPIN;
}

/* By a waiter; a failed attempt is made again by the next one that looks. */
void zoo_hybrid_switch_if_wanted(struct zoo_mutex *m);

/*
 * The same by a waiter for a signal and not for the lock; `signaller`: id of the thread that has
 * signalled last, or 0.
 */
void zoo_hybrid_switch_for_signal(struct zoo_mutex *m, uint32_t signaller);

extern const struct side zoo_block_side, zoo_cas_side, zoo_mcs_side, zoo_ticket_side, zoo_clh_side;

/*
 * pair.c: two locks of the zoo, chosen by name.  They have blocks of their own, which `end` gives
 * back.
 */
extern const struct side zoo_fast_side, zoo_slow_side;
void zoo_pair_choose(const struct zoo_lock *fast, const struct zoo_lock *slow);
const char *zoo_pair_start(void);
void zoo_pair_end(struct zoo_mutex *m);
extern const struct zoo_lock zoo_hybridpair, zoo_hybridpaircond;

#endif
