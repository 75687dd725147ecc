/* SPDX-License-Identifier: MIT */
/* fg_sem_*: the API's names for lock/sem.h. */
#include "api/adapt.h"

#include <errno.h>

#include "lock/sem.h"

FG_SAME_LAYOUT(fg_sem_t, uint64_t);

static uint64_t *sem_of(fg_sem_t *sem)
{
	return (uint64_t *)&sem->fg_state;
}

int fg_sem_init(fg_sem_t *sem, unsigned int value)
{
	if (value > FG_SEM_MAX)
		return EINVAL;
	sem->fg_state = value;
	return 0;
}

int fg_sem_destroy(fg_sem_t *sem)
{
	return 0;
}

int fg_sem_wait(fg_sem_t *sem)
{
	return _fg_sem_wait(sem_of(sem), NULL);
}

int fg_sem_trywait(fg_sem_t *sem)
{
	return _fg_sem_trywait(sem_of(sem)) ? 0 : EAGAIN;
}

int fg_sem_timedwait(fg_sem_t *sem, clockid_t clock, const struct timespec *deadline)
{
	struct fg_deadline d;

	return fg_deadline_from(&d, clock, deadline) ? _fg_sem_wait(sem_of(sem), &d) : EINVAL;
}

int fg_sem_post(fg_sem_t *sem)
{
	return _fg_sem_post(sem_of(sem));
}
