/* SPDX-License-Identifier: MIT */
/* pthread_barrier_*.  Process-shared ones stay glibc's. */
#include "preload/preload.h"

#include <errno.h>

#include "lock/barrier.h"

FG_EXPORT(pthread_barrier_init);
FG_EXPORT(pthread_barrier_wait);
FG_EXPORT(pthread_barrier_destroy);

_Static_assert(sizeof(struct fg_barrier) == sizeof(pthread_barrier_t), "in place");

static struct fg_barrier *barrier_of(pthread_barrier_t *barrier)
{
	return (struct fg_barrier *)barrier;
}

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr,
			 unsigned int count)
{
	int shared = PTHREAD_PROCESS_PRIVATE;

	if (count == 0 || count > FG_BARRIER_MAX)
		return EINVAL;
	if (attr) {
		pthread_barrierattr_getpshared(attr, &shared);
		if (shared != PTHREAD_PROCESS_PRIVATE)
			return fg_native_pthread_barrier_init()(barrier, attr, count);
	}
	_fg_barrier_init(barrier_of(barrier), count);
	return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	if (fg_unlikely(barrier_of(barrier)->shared))
		return fg_native_pthread_barrier_wait()(barrier);
	return _fg_barrier_wait(barrier_of(barrier)) ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	if (fg_unlikely(barrier_of(barrier)->shared))
		return fg_native_pthread_barrier_destroy()(barrier);
	_fg_barrier_destroy(barrier_of(barrier));
	return 0;
}
