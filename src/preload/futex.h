/* SPDX-License-Identifier: MIT */
/* syscall(SYS_futex, ...): where filter.c, which has the name, sends it. */
#ifndef FG_PRELOAD_FUTEX_H
#define FG_PRELOAD_FUTEX_H

/* syscall(2) with all that it may have been given, and where it was called. */
long fg_syscall_futex(long nr, long a, long b, long c, long d, long e, long f, const void *caller)
    __attribute__((visibility("hidden"), used));
#endif
