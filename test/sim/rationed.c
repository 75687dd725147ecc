/* SPDX-License-Identifier: MIT */
/*
 * Random schedules have no periods, and so no quota (bandwidth.c).  Here CPU time is rationed, and
 * is not, in turn, so often that a wait may see both.
 */
#include "kernel.h"

#define EACH (2 * US)

/* In the place of runtime/cpus.c's (ld --wrap). */
bool __wrap_fg_is_rationed(void);
bool __wrap_fg_is_rationed(void)
{
	return here->now / EACH % 2;
}
