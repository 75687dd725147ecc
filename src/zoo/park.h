/* SPDX-License-Identifier: MIT */
/* A waiter's own node: spin for FLEXGUARD_SPIN_NS, then sleep until the grant. */
#ifndef FG_ZOO_PARK_H
#define FG_ZOO_PARK_H

#include "zoo/zoo.h"

enum { ZOO_WAITING, ZOO_PARKED, ZOO_GRANTED };

/* False: not granted while spinning. */
static inline bool zoo_spin_for_grant(struct zoo_node *me)
{
	return zoo_spin_until(fg_load_acquire(&me->status) == ZOO_GRANTED);
}

static inline void zoo_wait_for_grant(struct zoo_node *me)
{
	uint32_t status = ZOO_WAITING;

	if (zoo_spin_for_grant(me))
		return;
	/* If it fails, the grant has come. */
	if (__atomic_compare_exchange_n(&me->status, &status, ZOO_PARKED, false, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE))
		while (fg_load_acquire(&me->status) == ZOO_PARKED)
			zoo_park(&me->status, ZOO_PARKED);
}

/* After it the node is its thread's again; the wake-up only names its address. */
static inline void zoo_grant(struct zoo_node *n)
{
	if (__atomic_exchange_n(&n->status, ZOO_GRANTED, __ATOMIC_ACQ_REL) == ZOO_PARKED)
		zoo_unpark(&n->status);
}

#endif
