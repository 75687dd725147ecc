/* SPDX-License-Identifier: MIT */
/* fg_barrier_*: the API's names for lock/barrier.h. */
#include "api/adapt.h"

#include <errno.h>

#include "lock/barrier.h"

FG_SAME_LAYOUT(fg_barrier_t, struct fg_barrier);

static struct fg_barrier *barrier_of(fg_barrier_t *barrier)
{
	return (struct fg_barrier *)barrier;
}

int fg_barrier_init(fg_barrier_t *barrier, unsigned int count)
{
	if (count == 0 || count > FG_BARRIER_MAX)
		return EINVAL;
	_fg_barrier_init(barrier_of(barrier), count);
	return 0;
}

int fg_barrier_destroy(fg_barrier_t *barrier)
{
	_fg_barrier_destroy(barrier_of(barrier));
	return 0;
}

int fg_barrier_wait(fg_barrier_t *barrier)
{
	return _fg_barrier_wait(barrier_of(barrier)) ? FG_BARRIER_SERIAL : 0;
}
