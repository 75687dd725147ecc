/* SPDX-License-Identifier: MIT */
/*
 * Any CPU that has no file of its own: correct, not tuned, and its system calls go by a name
 * (sys/libc.h).
 */
#ifndef FG_ARCH_GENERIC_H
#define FG_ARCH_GENERIC_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__riscv)
#define FG_VDSO_CLOCK "__vdso_clock_gettime"
#endif

static inline void fg_pause(void)
{
	__asm__ volatile("" ::: "memory");
}

/* A barrier, after a sequentially consistent read-modify-write, which need not be one. */
static inline void fg_fence_after_rmw(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Adds to a number that only this thread and its signal handlers write. */
static inline void fg_add_own(uint32_t *p, uint32_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static inline long fg_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long ret = syscall(nr, a, b, c, d, e, f);

	if (ret < 0)
		ret = -errno;
	errno = saved;
	return ret;
}

#endif
