/* SPDX-License-Identifier: MIT */
#include "preload/cond_pshared.h"

int fg_cond_pshared_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			 const struct timespec *at)
{
	return fg_cond_bridge_wait(cond, mutex, clock, at);
}

int fg_cond_pshared_wake(pthread_cond_t *cond, bool all)
{
	return fg_cond_bridge_wake(cond, all);
}

int fg_cond_pshared_destroy(pthread_cond_t *cond)
{
	return fg_cond_bridge_destroy(cond);
}
