/* SPDX-License-Identifier: MIT */
#include "lock/sem.h"

#include <errno.h>

#include "runtime/count.h"

/* Not in the semaphore, which other processes map. */
static struct fg_spin_histories histories;

static uint32_t *value_of(uint64_t *sem)
{
	return (uint32_t *)sem + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

bool _fg_sem_trywait(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	while ((uint32_t)have)
		/* Acquire: pairs with the release of glibc's sem_post(). */
		if (__atomic_compare_exchange_n(sem, &have, have - 1, true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

bool _fg_sem_spin(uint64_t *sem, const struct fg_deadline *deadline)
{
	struct fg_wait w = fg_wait_for_event(fg_self(),
					     fg_spin_history_at(&histories, (uintptr_t)sem >> 4));
	bool got = false;

	while (!got && fg_spin_while(&w, value_of(sem), ~0u, 0, deadline))
		got = _fg_sem_trywait(sem);
	fg_event_over(&w, got);
	return got;
}

#define ONE_SLEEPER (1ull << 32)

/*
 * Value and sleepers are one word: a post that does not see the sleeper comes
 * before it, and the sleeper sees its value.
 */
static int sleep_for(uint64_t *sem, const struct fg_deadline *deadline)
{
	uint64_t have = __atomic_add_fetch(sem, ONE_SLEEPER, __ATOMIC_RELAXED);

	for (;;) {
		if ((uint32_t)have) {
			/* Acquire: pairs with the release in _fg_sem_post(). */
			if (__atomic_compare_exchange_n(sem, &have, have - 1 - ONE_SLEEPER, true,
							__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return 0;
			continue;
		}
		if (fg_futex_wait(value_of(sem), 0, FG_FUTEX_ANY, deadline) == -ETIMEDOUT) {
			/* Not woken, so it takes nobody's wake-up with it. */
			__atomic_fetch_sub(sem, ONE_SLEEPER, __ATOMIC_RELAXED);
			return ETIMEDOUT;
		}
		have = fg_load_relaxed(sem);
	}
}

int _fg_sem_wait(uint64_t *sem, const struct fg_deadline *deadline)
{
	if (_fg_sem_trywait(sem) || _fg_sem_spin(sem, deadline))
		return 0;
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	return sleep_for(sem, deadline);
}

int _fg_sem_post(uint64_t *sem)
{
	uint64_t have = fg_load_relaxed(sem);

	do {
		if ((uint32_t)have >= FG_SEM_MAX)
			return EOVERFLOW;
		/* Release: pairs with the acquire of whoever takes it. */
	} while (!__atomic_compare_exchange_n(sem, &have, have + 1, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
#ifdef FG_BROKEN_SEM /* a test proves that the tests notice */
	if (have == ONE_SLEEPER)
#else
	if (have >= ONE_SLEEPER)
#endif
		fg_futex_wake(value_of(sem), 1, FG_FUTEX_ANY);
	return 0;
}
