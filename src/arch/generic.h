/* SPDX-License-Identifier: MIT */
/* Any CPU that has no file of its own: correct, not tuned. */
#ifndef FG_ARCH_GENERIC_H
#define FG_ARCH_GENERIC_H

#include <errno.h>
#include <unistd.h>

static inline void fg_pause(void)
{
	__asm__ volatile("" ::: "memory");
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
