/* SPDX-License-Identifier: MIT */
/* pthread_spin_*: process-shared ones too (lock/spin.h). */
#include "preload/preload.h"

#include <errno.h>

#include "lock/spin.h"

FG_EXPORT(pthread_spin_init);
FG_EXPORT(pthread_spin_destroy);
FG_EXPORT(pthread_spin_lock);
FG_EXPORT(pthread_spin_trylock);
FG_EXPORT(pthread_spin_unlock);

int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	fg_store_release((int32_t *)lock, FG_SPIN_FREE);
	return 0;
}

int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	return 0;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	_fg_spin_lock((int32_t *)lock, FG_CALLER);
	return 0;
}

int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	/* A held lock is left alone: no store to its line. */
	if (fg_load_relaxed((int32_t *)lock) != FG_SPIN_FREE)
		return EBUSY;
	return _fg_spin_trylock((int32_t *)lock, fg_self()) ? 0 : EBUSY;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	_fg_spin_unlock((int32_t *)lock);
	return 0;
}
