/* SPDX-License-Identifier: MIT */
/*
 * pthread_once and C11's call_once.  All of them: those that glibc calls itself it calls by other
 * names.
 */
#include "preload/preload.h"

#include <threads.h>

#include "lock/once.h"

FG_EXPORT(pthread_once);
FG_EXPORT(call_once);
FG_EXPORT_AS(__pthread_once, pthread_once);

_Static_assert(sizeof(pthread_once_t) == sizeof(uint32_t) && sizeof(once_flag) == sizeof(uint32_t),
	       "in place");

int pthread_once(pthread_once_t *once, void (*routine)(void))
{
	_fg_once((uint32_t *)once, routine);
	return 0;
}

void call_once(once_flag *once, void (*routine)(void))
{
	_fg_once((uint32_t *)once, routine);
}
