/* SPDX-License-Identifier: MIT */
/* How long something took: CLOCK_MONOTONIC. */
#ifndef FG_CLI_CLOCK_H
#define FG_CLI_CLOCK_H

#include "monitor/clock.h"

static inline double fg_clock_seconds(void)
{
	return (double)fg_now_ns() / 1e9;
}

#endif
