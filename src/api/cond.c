/* SPDX-License-Identifier: MIT */
/* fg_cond_*: the API's names for lock/cond.h. */
#include "api/adapt.h"

#include <errno.h>

#include "cond_ours.h"
#include "lock/mutex.h"

FG_SAME_LAYOUT(fg_cond_t, struct fg_cond);

static struct fg_cond *cond_of(fg_cond_t *cond)
{
	return (struct fg_cond *)cond;
}

static int release_mutex(void *mutex)
{
	return _fg_mutex_unlock(mutex);
}

static int take_mutex(void *mutex)
{
	return _fg_mutex_lock_untraced(mutex, NULL);
}

static int wait_on(fg_cond_t *cond, fg_mutex_t *mutex, const struct fg_deadline *deadline)
{
	struct fg_mutex *m = (struct fg_mutex *)mutex;
	struct fg_cond_mutex callers = {release_mutex, take_mutex, m, m};

	return _fg_chosen_cond_wait(cond_of(cond), &callers, deadline);
}

int fg_cond_init(fg_cond_t *cond)
{
	*cond_of(cond) = (struct fg_cond){.epoch = fg_epoch};
	return 0;
}

int fg_cond_destroy(fg_cond_t *cond)
{
	_fg_chosen_cond_destroy(cond_of(cond));
	return 0;
}

int fg_cond_wait(fg_cond_t *cond, fg_mutex_t *mutex)
{
	return wait_on(cond, mutex, NULL);
}

int fg_cond_timedwait(fg_cond_t *cond, fg_mutex_t *mutex, clockid_t clock,
		      const struct timespec *deadline)
{
	struct fg_deadline d;

	return fg_deadline_from(&d, clock, deadline) ? wait_on(cond, mutex, &d) : EINVAL;
}

int fg_cond_signal(fg_cond_t *cond)
{
	_fg_chosen_cond_signal(cond_of(cond));
	return 0;
}

int fg_cond_broadcast(fg_cond_t *cond)
{
	_fg_chosen_cond_broadcast(cond_of(cond));
	return 0;
}
