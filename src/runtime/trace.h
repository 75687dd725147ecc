/* SPDX-License-Identifier: MIT */
/*
 * Notes waits for held locks in the table of abi/trace.h, while somebody looks.
 *
 * Functions that programs call pass their return address to the lock, whose `_traced` twin, out
 * of line, serves that case; so nothing else pays more than a test.
 */
#ifndef FG_RUNTIME_TRACE_H
#define FG_RUNTIME_TRACE_H

#include "abi/trace.h"
#include "arch/arch.h"
#include "runtime/thread.h"
#include "sys/futex.h"

extern struct fg_trace fg_trace_here __attribute__((visibility("hidden")));

static inline bool fg_is_traced(void)
{
	return fg_unlikely(fg_load_relaxed(&fg_trace_here.until_ns) != 0);
}

struct fg_traced {
	uint64_t since_ns;
	uint16_t contended; /* this thread's count: another one tells that the lock was held */
};

struct fg_traced fg_trace_begins(void);
void fg_trace_ends(const struct fg_traced *t, const void *lock, const void *caller);
/* A wait that is one whatever was counted; errno stays. */
void fg_trace_wait(uint64_t since_ns, const void *lock, const void *caller);

/* The calling thread's, if there is room. */
void fg_trace_stack(const void *lock, const void *caller, uint64_t took_ns, uint64_t weight_ns);
#ifdef FG_HAVE_REGISTERS
extern struct fg_trace_stacks fg_trace_stacks __attribute__((visibility("hidden")));
#define FG_TRACE_STACKS_HERE (&fg_trace_stacks)
#else
#define FG_TRACE_STACKS_HERE NULL
#endif

/* In a function that the program calls, or that such a one jumps to. */
#define FG_CALLER __builtin_return_address(0)

#endif
