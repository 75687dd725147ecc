/* SPDX-License-Identifier: MIT */
/*
 * Furwocks: a reader-writer lock of two futexes and a count.  Franke, Russell, Kirkwood, OLS 2002,
 * section 3 (by Mackerras).
 *
 *	gate	a lock that readers pass through, and a writer keeps until it is done
 *	count	readers, less 1 while there is a writer
 *	wait	a semaphore on which the writer waits for the last reader
 *
 * A reader that waits at the gate waits for a writer that waits for readers: a thread that holds a
 * read lock cannot take another one then.
 */
#include <errno.h>

#include "zoo/rwlock.h"

static uint32_t *gate_of(struct zoo_rwlock *l)
{
	return &l->s[0];
}

static int32_t *count_of(struct zoo_rwlock *l)
{
	return (int32_t *)&l->s[1];
}

static uint32_t *wait_of(struct zoo_rwlock *l)
{
	return &l->s[2];
}

static bool try_gate(struct zoo_rwlock *l)
{
	uint32_t none = 0;

	return fg_cas_acquire(gate_of(l), &none, 1);
}

static bool down_gate(struct zoo_rwlock *l, const struct fg_deadline *deadline)
{
	if (try_gate(l))
		return true;
	while (fg_xchg_acquire(gate_of(l), 2))
		if (zoo_rwlock_wait(l, gate_of(l), 2, deadline) == -ETIMEDOUT)
			return false;
	return true;
}

static void up_gate(struct zoo_rwlock *l)
{
	bool shared = zoo_rwlock_is_shared(l);

	if (__atomic_exchange_n(gate_of(l), 0, __ATOMIC_RELEASE) == 2)
		zoo_rwlock_wake(gate_of(l), 1, shared);
}

static bool read_in(struct zoo_rwlock *l)
{
	__atomic_fetch_add(count_of(l), 1, __ATOMIC_RELAXED);
	up_gate(l);
	return true;
}

/*
 * Past the gate: a reader that is taken off its CPU there would be waited for.  Below 0 a writer
 * has it; a writer that waits waits for one reader more, unless it has said already that it does
 * (`wants`).
 */
static bool tryrd(struct zoo_rwlock *l)
{
	int32_t count = __atomic_load_n(count_of(l), __ATOMIC_RELAXED);

	/* Acquire: pairs with wrunlock()'s. */
	while (count >= 0 && !fg_load_relaxed(&l->wants))
		if (__atomic_compare_exchange_n(count_of(l), &count, count + 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* At its deadline it tries: the gate may be that of another try, which was in vain. */
static bool rdlock(struct zoo_rwlock *l, const struct fg_deadline *deadline)
{
	return down_gate(l, deadline) ? read_in(l) : tryrd(l);
}

/* Acquire: the last of the readers wakes the writer, which comes after all of them. */
static void rdunlock(struct zoo_rwlock *l)
{
	bool shared = zoo_rwlock_is_shared(l);

	if (__atomic_sub_fetch(count_of(l), 1, __ATOMIC_ACQ_REL) >= 0)
		return;
	fg_store_release(wait_of(l), 1);
	zoo_rwlock_wake(wait_of(l), 1, shared);
}

static void count_back(struct zoo_rwlock *l)
{
	fg_store_relaxed(&l->wants, 0);
	up_gate(l);
}

static bool wrlock(struct zoo_rwlock *l, const struct fg_deadline *deadline)
{
	int32_t count;

	if (!down_gate(l, deadline))
		return false;
	fg_store_relaxed(&l->wants, 1);
	if (__atomic_sub_fetch(count_of(l), 1, __ATOMIC_ACQUIRE) < 0)
		return true;
	while (!fg_load_acquire(wait_of(l))) {
		if (zoo_rwlock_wait(l, wait_of(l), 0, deadline) != -ETIMEDOUT)
			continue;
		/* Below 0 the last reader has left, and wakes me. */
		count = __atomic_load_n(count_of(l), __ATOMIC_RELAXED);
		while (count >= 0) {
			if (__atomic_compare_exchange_n(count_of(l), &count, count + 1, false,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
				count_back(l);
				return false;
			}
		}
		deadline = NULL;
	}
	fg_store_relaxed(wait_of(l), 0);
	return true;
}

static bool trywr(struct zoo_rwlock *l)
{
	int32_t none = 0;

	if (!try_gate(l))
		return false;
	if (__atomic_compare_exchange_n(count_of(l), &none, -1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED)) {
		fg_store_relaxed(&l->wants, 1);
		return true;
	}
	up_gate(l);
	return false;
}

static void wrunlock(struct zoo_rwlock *l)
{
	__atomic_fetch_add(count_of(l), 1, __ATOMIC_RELEASE);
	count_back(l);
}

const struct zoo_rwlock_ops zoo_furwock = {rdlock, tryrd, rdunlock, wrlock, trywr, wrunlock};
