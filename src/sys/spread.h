/* SPDX-License-Identifier: MIT */
/* Places for threads that do not know who they are yet. */
#ifndef FG_SPREAD_H
#define FG_SPREAD_H

#include <stdint.h>

/*
 * A number that is another one for most threads that run at once.  Their stacks, and so their
 * thread pointers, are some power of two apart: the multiplication brings the differences up
 * (Knuth, The Art of Computer Programming 3, 6.4).
 */
static inline uint32_t fg_spread(void)
{
	uint64_t mine = (uint64_t)(uintptr_t)__builtin_thread_pointer() >> 6;

	return (uint32_t)(mine * 0x9e3779b97f4a7c15u >> 32);
}

#endif
