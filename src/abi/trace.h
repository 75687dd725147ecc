/* SPDX-License-Identifier: MIT */
/*
 * Which threads wait for which lock, and where: for `flexguard stat`, and only while it asks.
 *
 * The table lies in the memory of each process, untouched and so without pages
 * until then.  The command finds it by its exported name, switches it on for two
 * seconds at a time, and reads it, all with process_vm_readv(2) and its twin:
 * whoever may debug a process may do so.  Nothing is on the paths of locks that
 * are free; one that is held costs a load more.
 */
#ifndef FG_TRACE_H
#define FG_TRACE_H

#include <stdint.h>

#define FG_TRACE_SYMBOL "fg_trace"
#define FG_TRACE_MAGIC	0x52544746u
#define FG_TRACE_ABI	1u
/* Locks and places that one process waits for in two seconds, at most.  Not varied. */
#define FG_TRACE_ENTRIES 4096u
#define FG_TRACE_PROBES	 8u /* neighbours that are tried when an entry is taken */

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
	uint32_t lost;	   /* waits for which no entry was free */
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: off */
	uint64_t unused[5];
	struct fg_trace_entry entry[FG_TRACE_ENTRIES];
};

#endif
