/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking, and their counts: with private futexes, or for a process-shared lock with
 * the others.
 */
#include <time.h>

#include "lock/mutex.h"
#include "rwlock_ours.h"
#include "zoo/rwlock.h"
#include "zoo/zoo.h"

static int wait(uint32_t *word, uint32_t value, bool shared, const struct fg_deadline *deadline)
{
	if (fg_likely(!shared))
		return fg_futex_wait(word, value, FG_FUTEX_ANY, deadline);
	return fg_futex_wait_shared(word, value, deadline);
}

static int wake(uint32_t *word, int count, bool shared)
{
	return fg_likely(!shared) ? fg_futex_wake(word, count, FG_FUTEX_ANY) :
				    fg_futex_wake_shared(word, count);
}

int zoo_wait(struct zoo_mutex *m, uint32_t *word, uint32_t value,
	     const struct fg_deadline *deadline)
{
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	return wait(word, value, zoo_is_shared(m), deadline);
}

bool zoo_is_shared(const struct zoo_mutex *m)
{
	return fg_load_relaxed(&m->kind) & FG_KIND_ZOO_SHARED;
}

int zoo_wake(uint32_t *word, int count, bool shared)
{
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	return wake(word, count, shared);
}

int zoo_rwlock_wait(struct zoo_rwlock *l, uint32_t *word, uint32_t value,
		    const struct fg_deadline *deadline)
{
	return wait(word, value, zoo_rwlock_is_shared(l), deadline);
}

bool zoo_rwlock_is_shared(const struct zoo_rwlock *l)
{
	return fg_load_relaxed(&l->kind) & FG_RW_OURS_SHARED;
}

int zoo_rwlock_wake(uint32_t *word, int count, bool shared)
{
	return wake(word, count, shared);
}

void zoo_park(uint32_t *word, uint32_t value)
{
	fg_count(fg_self(), FG_STAT_PARKS, 1);
	fg_futex_wait(word, value, FG_FUTEX_ANY, NULL);
}

void zoo_unpark(uint32_t *word)
{
	fg_count(fg_self(), FG_STAT_WAKEUPS, 1);
	fg_futex_wake(word, 1, FG_FUTEX_ANY);
}

void zoo_sleep_ns(uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)ns};

	fg_syscall6(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}
