/* SPDX-License-Identifier: MIT */
/*
 * The waits of semaphores; the rest is glibc's, as is every sleep: a cancellation
 * point that a signal ends.
 */
#include "preload/preload.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "lock/sem.h"
#include "sys/libc.h"

FG_EXPORT(sem_wait);
FG_EXPORT(sem_timedwait);
FG_EXPORT(sem_clockwait);

_Static_assert(sizeof(long) == 8, "glibc's format of 64-bit machines");

static uint64_t *sem_of(sem_t *sem)
{
	return (uint64_t *)sem;
}

/* A thread that is cancelled takes no value. */
static void give_back(void *sem)
{
	fg_libc_sem_post()(sem);
}

/*
 * Not to be left by asynchronous cancellation: while it spins, a thread may be counted as a
 * sleeper, have the gate, or stand in the queue for it.  Such a cancellation comes at the end.
 */
static bool spin(sem_t *sem, const struct fg_deadline *deadline)
{
	bool got;
	int type;

	fg_libc_pthread_setcanceltype()(PTHREAD_CANCEL_DEFERRED, &type);
	got = _fg_sem_spin(sem_of(sem), deadline);
	if (!got) {
		fg_libc_pthread_setcanceltype()(type, NULL);
		return false;
	}
	pthread_cleanup_push(give_back, sem);
	fg_libc_pthread_setcanceltype()(type, NULL);
	pthread_cleanup_pop(0);
	return true;
}

/* True if the semaphore is ours now; a cancellation point, as glibc's are, even then. */
static bool taken(sem_t *sem, const struct fg_deadline *deadline)
{
	fg_testcancel();
	return _fg_sem_fast(sem_of(sem)) || spin(sem, deadline);
}

/* After glibc's wait, which found no value when it began. */
static int waited(sem_t *sem, bool was_empty, int r)
{
	if (!r && was_empty)
		_fg_sem_slept(sem_of(sem));
	return r;
}

int sem_wait(sem_t *sem)
{
	bool was_empty;

	if (taken(sem, NULL))
		return 0;
	was_empty = _fg_sem_is_empty(sem_of(sem));
	return waited(sem, was_empty, fg_native_sem_wait()(sem));
}

int sem_timedwait(sem_t *sem, const struct timespec *abstime)
{
	struct timespec real;
	struct fg_deadline deadline = {.clock = CLOCK_REALTIME};
	bool was_empty;

	abstime = fg_given_time(&real, CLOCK_REALTIME, abstime, FG_CALLER);
	deadline.at = *abstime;
	if (fg_valid_timespec(abstime) && taken(sem, &deadline))
		return 0;
	was_empty = _fg_sem_is_empty(sem_of(sem));
	return waited(sem, was_empty, fg_native_sem_timedwait()(sem, abstime));
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *abstime)
{
	struct timespec real;
	struct fg_deadline deadline = {.clock = clock};
	bool was_empty;

	abstime = fg_given_time(&real, clock, abstime, FG_CALLER);
	deadline.at = *abstime;
	if (fg_valid_clock(clock) && fg_valid_timespec(abstime) && taken(sem, &deadline))
		return 0;
	was_empty = _fg_sem_is_empty(sem_of(sem));
	return waited(sem, was_empty, fg_native_sem_clockwait()(sem, clock, abstime));
}
