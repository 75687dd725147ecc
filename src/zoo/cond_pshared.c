/* SPDX-License-Identifier: MIT */
/*
 * In the place of preload/cond_pshared.c.  A bridge is this process's, as are the mutexes of most
 * locks.  With mutexes that other processes know too a signal of one of these could come between:
 * there the condition variable is ours as well.
 */
#include "preload/cond_pshared.h"

#include <errno.h>

#include "preload/preload.h"
#include "zoo/cond_shared.h"

#pragma GCC visibility pop /* nothing here is a pthread name */

static struct fg_cond_shared *of(pthread_cond_t *cond)
{
	return (struct fg_cond_shared *)cond;
}

int fg_cond_pshared_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			 const struct timespec *at)
{
	struct fg_cond_mutex m = fg_cond_mutex_of(mutex);
	struct fg_deadline deadline = {.clock = clock};

	if (!_fg_mutex_may_be_shared())
		return fg_cond_bridge_wait(cond, mutex, clock, at);
	if (clock < 0)
		deadline.clock = fg_cond_clock(cond);
	if (at) {
		if (!fg_valid_timespec(at))
			return EINVAL;
		deadline.at = *at;
	}
	return _fg_cond_shared_wait(of(cond), &m, at ? &deadline : NULL);
}

int fg_cond_pshared_wake(pthread_cond_t *cond, bool all)
{
	if (!_fg_mutex_may_be_shared())
		return fg_cond_bridge_wake(cond, all);
	_fg_cond_shared_wake(of(cond), all);
	return 0;
}

int fg_cond_pshared_destroy(pthread_cond_t *cond)
{
	if (!_fg_mutex_may_be_shared())
		return fg_cond_bridge_destroy(cond);
	_fg_cond_shared_destroy(of(cond));
	return 0;
}
