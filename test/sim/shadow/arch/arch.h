/* SPDX-License-Identifier: MIT */
/* Stands before src/arch/arch.h in the include path: the CPU and the kernel are simulated. */
#ifndef FG_ARCH_H
#define FG_ARCH_H

#include <stdint.h>

#define FG_PAGE_MAX 4096

void sim_pause(void);
long sim_syscall(long nr, long a, long b, long c, long d, long e, long f);
long sim_syscall_called(long nr, long a, long b, long c, long d, long e, long f);
long sim_syscall_point(long nr, long a, long b, long c, long d, long e, long f);

static inline void fg_pause(void)
{
	sim_pause();
}

/* A barrier, after a sequentially consistent read-modify-write, which need not be one. */
static inline void fg_fence_after_rmw(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline long fg_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	return sim_syscall(nr, a, b, c, d, e, f);
}

static inline long fg_syscall6_called(long nr, long a, long b, long c, long d, long e, long f)
{
	return sim_syscall_called(nr, a, b, c, d, e, f);
}

/* Two accesses that the simulation sees, and no atomic one. */
static inline void fg_add_own(uint32_t *p, uint32_t n)
{
	*(volatile uint32_t *)p += n;
}

#endif
