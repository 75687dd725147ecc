/* SPDX-License-Identifier: MIT */
/* fg_once: the API's name for lock/once.h. */
#include "api/adapt.h"

#include "lock/once.h"

FG_SAME_LAYOUT(fg_once_t, uint32_t);

int fg_once(fg_once_t *once, void (*routine)(void))
{
	_fg_once(&once->fg_state, routine);
	return 0;
}
