/* SPDX-License-Identifier: MIT */
/*
 * Static probes (USDT) for bpftrace, perf and SystemTap: an instruction that does nothing, until a
 * tracer puts its own in the place.  On slow paths only.  Where <sys/sdt.h> was not there when this
 * was built, there are none.  flexguard(3) lists them.
 *
 *   contended(lock)        somebody else has the lock, and this thread begins to wait
 *   acquired(lock, error)  that wait has ended: 0, or ETIMEDOUT
 *   parked(word)           a thread goes to sleep in the kernel, for whatever object
 *   woken(word, result)    it is back: 0, or a negative error number of futex(2)
 */
#ifndef FG_SYS_PROBE_H
#define FG_SYS_PROBE_H

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define FG_PROBE1(name, a)    DTRACE_PROBE1(flexguard, name, a)
#define FG_PROBE2(name, a, b) DTRACE_PROBE2(flexguard, name, a, b)
#else
#define FG_PROBE1(name, a)    ((void)(a))
#define FG_PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
