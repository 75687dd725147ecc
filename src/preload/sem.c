/* SPDX-License-Identifier: MIT */
/*
 * The waits of semaphores; the rest is glibc's, as is every sleep: a cancellation
 * point that a signal ends.
 */
#include "preload/preload.h"

#include <errno.h>
#include <semaphore.h>

#include "lock/sem.h"

FG_EXPORT(sem_wait);
FG_EXPORT(sem_timedwait);
FG_EXPORT(sem_clockwait);

_Static_assert(sizeof(long) == 8, "glibc's format of 64-bit machines");

static uint64_t *sem_of(sem_t *sem)
{
	return (uint64_t *)sem;
}

/* True if the semaphore is ours now; a cancellation point, as glibc's are, even then. */
static bool taken(sem_t *sem, const struct fg_deadline *deadline)
{
	fg_testcancel();
	return _fg_sem_trywait(sem_of(sem)) || _fg_sem_spin(sem_of(sem), deadline);
}

int sem_wait(sem_t *sem)
{
	return taken(sem, NULL) ? 0 : fg_native_sem_wait()(sem);
}

int sem_timedwait(sem_t *sem, const struct timespec *abstime)
{
	struct timespec real;
	struct fg_deadline deadline = {.clock = CLOCK_REALTIME};

	abstime = fg_given_time(&real, CLOCK_REALTIME, abstime, FG_CALLER);
	deadline.at = *abstime;
	return fg_valid_timespec(abstime) && taken(sem, &deadline) ?
		   0 :
		   fg_native_sem_timedwait()(sem, abstime);
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *abstime)
{
	struct timespec real;
	struct fg_deadline deadline = {.clock = clock};

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	deadline.at = *abstime;
	return fg_valid_clock(clock) && fg_valid_timespec(abstime) && taken(sem, &deadline) ?
		   0 :
		   fg_native_sem_clockwait()(sem, clock, abstime);
}
