/* SPDX-License-Identifier: MIT */
/*
 * The ticket condition variable of the BPF Hybrid Lock (Laforet, Lozi, Lawall, 2023, section III):
 * a waiter draws a number, a signal calls the next one.
 *
 * As published it loses signals: numbers are called in the order in which waiters came, and a futex
 * wakes in the order in which they fell asleep, so that one whose number was not called may take
 * the wake-up.  The repair: a sleeper waits in a channel of its number, and a signal wakes all of
 * the channel of the number that it calls.  A signal without waiters is not stored, and one that
 * comes without the mutex is not lost.  test/verify/ticket.pml has both,
 * test/unit/cond_lost_signal.c shows the fault.
 *
 * The paper has no timed wait, and a number cannot be given back: a waiter that gives up would
 * leave one behind that is called, and nobody comes.  Here it calls all numbers that are out, as a
 * broadcast does: the others wake up for nothing, which POSIX allows, and no signal is lost
 * (ticket.pml -DTIMED -DLEAVE).
 */
#ifndef FG_ZOO_TICKETCOND_H
#define FG_ZOO_TICKETCOND_H

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"

struct zoo_ticket_cond {
	uint32_t target; /* the last number drawn; guarded by the mutex */
	uint32_t seq;	 /* the last number called */
};

#define ZOO_CALLED(c, number) \
	((int32_t)(__atomic_load_n(&(c)->seq, __ATOMIC_ACQUIRE) - (number)) >= 0)

static inline long zoo_ticket_futex(struct zoo_ticket_cond *c, int op, uint32_t value,
				    uint32_t channel)
{
	return syscall(SYS_futex, &c->seq, op | FUTEX_PRIVATE_FLAG, value, (void *)0, (void *)0,
		       channel);
}

/* Before the mutex is released; then zoo_ticket_await() without it. */
static inline uint32_t zoo_ticket_draw(struct zoo_ticket_cond *c)
{
	return __atomic_add_fetch(&c->target, 1, __ATOMIC_RELAXED);
}

/* Spins while `spin` is true: in the hybrid lock, while its spinning side is in use. */
static inline void zoo_ticket_await(struct zoo_ticket_cond *c, uint32_t number,
				    const volatile bool *spin)
{
	uint32_t seq;

	while (!ZOO_CALLED(c, number)) {
		if (*spin) {
			fg_pause();
			continue;
		}
		seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED);
		if ((int32_t)(seq - number) < 0)
			zoo_ticket_futex(c, FUTEX_WAIT_BITSET, seq, 1u << number % 32);
	}
}

static inline void zoo_ticket_signal(struct zoo_ticket_cond *c)
{
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED);

	do {
		if ((int32_t)(seq - __atomic_load_n(&c->target, __ATOMIC_RELAXED)) >= 0)
			return; /* nobody waits */
	} while (!__atomic_compare_exchange_n(&c->seq, &seq, seq + 1, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	/* All of the channel: others of it look and sleep again. */
	zoo_ticket_futex(c, FUTEX_WAKE_BITSET, INT_MAX, 1u << (seq + 1) % 32);
}

static inline void zoo_ticket_broadcast(struct zoo_ticket_cond *c)
{
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED), target;

	do {
		target = __atomic_load_n(&c->target, __ATOMIC_RELAXED);
		if ((int32_t)(seq - target) >= 0)
			return;
	} while (!__atomic_compare_exchange_n(&c->seq, &seq, target, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	zoo_ticket_futex(c, FUTEX_WAKE_BITSET, INT_MAX, FUTEX_BITSET_MATCH_ANY);
}

/* A waiter gives up.  False: too late, its number has been called. */
static inline bool zoo_ticket_leave(struct zoo_ticket_cond *c, uint32_t number)
{
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE), target;

	do {
		if ((int32_t)(seq - number) >= 0)
			return false;
		target = __atomic_load_n(&c->target, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&c->seq, &seq, target, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	if (target != number || seq + 1 != number) /* not alone */
		zoo_ticket_futex(c, FUTEX_WAKE_BITSET, INT_MAX, FUTEX_BITSET_MATCH_ANY);
	return true;
}

#endif
