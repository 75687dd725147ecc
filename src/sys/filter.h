/* SPDX-License-Identifier: MIT */
/*
 * Programs that give up system calls: seccomp(2).  A filter that was written for the
 * program knows nothing of us, and may kill for a call that it does not know.  So
 * from the first filter on the library makes no call but futex(2), with those
 * operations that glibc's own locks use, and what the dynamic linker has made before.
 *
 * To ask for a filter is a call as well.  One that the process was started with is
 * read in /proc, as the dynamic linker reads files; one that it installs goes by the
 * exported prctl() and syscall() (preload/filter.c).  Not seen: one that is installed
 * by instructions of the program's own (docs/design/preload.md).
 */
#ifndef FG_FILTER_H
#define FG_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/atomic.h"

/*
 * So many filters were installed when `flexguard run` tried the calls of the library
 * and lived (src/cli/launch/filter.c): a process below it that has as many has the same ones.
 * "allow": whatever there is lets them pass.
 */
#define FG_FILTERS_ENV "FLEXGUARD_FILTERS"

extern uint32_t fg_filters; /* seen, or about to be installed; 0: all calls may be made */

static inline bool fg_is_filtered(void)
{
	return fg_unlikely(fg_load_relaxed(&fg_filters) != 0);
}

/*
 * At the start of the process, before anything else that calls; a thread that locks earlier does
 * it.  `changed` is called when calls, and with them clocks, may be used no more, or again: by
 * whoever installs the filter, before it does.
 */
void fg_filter_setup(void (*changed)(void));

/* `before` is called when a first filter is about to come, and may make a call. */
void fg_filter_before(void (*before)(void));

/*
 * Around calls that a filter might not know, made when there is none: false, make none.  A
 * filter for all threads (SECCOMP_FILTER_FLAG_TSYNC) waits until those that have
 * begun have ended.  `whose` spreads threads over counters: any number.
 */
bool fg_call_begins(uint32_t whose);
void fg_call_ends(uint32_t whose);

/* The thread is about to install a filter; it could not. */
void fg_filter_comes(void);
void fg_filter_failed(void);
/*
 * There is one that came so, and not by exec: what the loader had to do at the start of the process
 * need not be allowed any more.
 */
bool fg_filter_is_own(void);
/* It is about to lose the cycle counter (clock.h); it has not lost it. */
void fg_filter_takes_counter(bool takes);

/* In the child of fork: calls of other threads are not its. */
void fg_filter_after_fork(void);

/* The kernel's id of this thread; without a call where there is a filter. */
uint32_t fg_tid(void);

/*
 * The same, as glibc has it: in a child of vfork, which runs on this thread's stack and in its
 * memory, and ends before it goes on, still the id of the thread.
 */
uint32_t fg_tid_of_libc(void);

/* Where glibc has it, from a thread's pointer on; 0: not known. */
ptrdiff_t fg_tid_place(void);

#endif
