/* SPDX-License-Identifier: MIT */
/* Notes waits for held locks in the table of sys/trace.h, while somebody looks. */
#ifndef FG_WAITS_H
#define FG_WAITS_H

#include "sys/atomic.h"
#include "sys/futex.h"
#include "sys/trace.h"

extern struct fg_trace fg_trace;

void fg_wait_note(const void *lock, uint64_t since_ns);

/* When the wait begins; 0: nobody looks. */
static inline uint64_t fg_wait_begins(void)
{
	return fg_unlikely(fg_load_relaxed(&fg_trace.until_ns)) ? fg_now_ns() : 0;
}

static inline void fg_wait_ends(const void *lock, uint64_t since_ns)
{
	if (fg_unlikely(since_ns))
		fg_wait_note(lock, since_ns);
}

#endif
