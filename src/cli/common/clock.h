/* SPDX-License-Identifier: MIT */
/* How long something took: CLOCK_MONOTONIC. */
#ifndef FG_CLI_CLOCK_H
#define FG_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t fg_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double fg_clock_seconds(void)
{
	return (double)fg_clock_ns() / 1e9;
}

#endif
