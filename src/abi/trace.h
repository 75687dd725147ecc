/* SPDX-License-Identifier: MIT */
/*
 * Which threads wait for which lock, and where: for `flexguard stat`, and only while it asks.
 *
 * The table lies in the memory of each process, untouched and so without pages
 * until then.  The command finds it by its exported name, switches it on for two
 * seconds at a time, and reads it, all by /proc/PID/mem:
 * whoever may debug a process may do so.  Nothing is on the paths of locks that
 * are free; one that is held costs a load more.
 *
 * For `--by stack` threads also leave copies of their stacks: the command unwinds them, by the
 * programs' own unwind tables, as perf record --call-graph dwarf does; nothing has to be built with
 * frame pointers.  A copy is made at the end of a wait in which a tick of the clock lay (all ticks
 * of a period, by CLOCK_MONOTONIC), so that a place has as many as its share of the time waited.
 */
#ifndef FG_TRACE_H
#define FG_TRACE_H

#include <stdint.h>

#define FG_TRACE_SYMBOL "fg_trace"
#define FG_TRACE_MAGIC	0x52544746u
#define FG_TRACE_ABI	2u
/* Locks and places that one process waits for in two seconds, at most.  Not varied. */
#define FG_TRACE_ENTRIES 4096u
#define FG_TRACE_PROBES	 8u /* neighbours that are tried when an entry is taken */
/* Threads that the command asks for by number, at most. */
#define FG_TRACE_THREADS 64u

/* Copies under way, of two pages: the command comes each 5 ms.  Not varied. */
#define FG_TRACE_STACKS	     16u
#define FG_TRACE_STACK_BYTES 8192u
#define FG_TRACE_REGISTERS   33u /* by their DWARF numbers; the most that an architecture has here */

enum fg_trace_state { FG_TRACE_FREE, FG_TRACE_WRITTEN, FG_TRACE_FULL };

struct fg_trace_stack {
	uint64_t lock, caller, took_ns;
	uint64_t weight_ns; /* ticks that lay in the wait, times the period */
	uint64_t pc;
	uint64_t from; /* the stack pointer: where the copy begins */
	uint64_t reg[FG_TRACE_REGISTERS];
	uint32_t tid;
	uint32_t bytes;
	unsigned char stack[FG_TRACE_STACK_BYTES];
};

/* Untouched until somebody asks for stacks. */
struct fg_trace_stacks {
	uint32_t state[FG_TRACE_STACKS]; /* written by the thread but for FULL -> FREE */
	uint32_t next;
	uint32_t unused;
	uint64_t lost_ns; /* the weight of waits for which no copy was free */
	struct fg_trace_stack stack[FG_TRACE_STACKS];
};

/* Waits for one lock from one place.  `lock` is 0 while the entry is free, and set last. */
struct fg_trace_entry {
	uint64_t lock;
	uint64_t caller; /* return address in the code that called us */
	uint64_t count;
	uint64_t total_ns, max_ns;
	uint64_t unused[3];
};

struct fg_trace {
	uint32_t magic, abi, entries;
	uint32_t lost;			/* waits for which no entry was free */
	uint64_t until_ns;		/* CLOCK_MONOTONIC; 0: off */
	uint64_t period_ns;		/* of ticks; 0: no stacks are wanted */
	struct fg_trace_stacks *stacks; /* NULL: this architecture has none */
	uint64_t unused[3];
	uint32_t thread[FG_TRACE_THREADS]; /* these only, up to the first 0; none: all */
	struct fg_trace_entry entry[FG_TRACE_ENTRIES];
};

#endif
