/* SPDX-License-Identifier: MIT */
#include "lock/sem.h"

#include "sys/count.h"

/* Not in the semaphore, which other processes map.  Semaphores that meet here share their luck. */
static fg_bet bets[256];

static fg_bet *bet_of(const uint64_t *sem)
{
	return &bets[(uint32_t)((uintptr_t)sem >> 4) * 0x9e3779b1u >> 24];
}

static uint32_t *value_of(uint64_t *sem)
{
	return (uint32_t *)sem + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

bool fg_sem_try(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	while ((uint32_t)have)
		/* Acquire: pairs with the release of glibc's sem_post(). */
		if (__atomic_compare_exchange_n(sem, &have, have - 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	return false;
}

bool fg_sem_wait_awake(uint64_t *sem, const struct fg_deadline *deadline)
{
	struct fg_wait w = fg_wait_for_event(fg_self(), bet_of(sem));
	bool got = false;

	while (!got && fg_spin_while(&w, value_of(sem), ~0u, 0, deadline))
		got = fg_sem_try(sem);
	fg_event_over(&w, got);
	return got;
}
