/* SPDX-License-Identifier: MIT */
/*
 * prctl() and syscall(): the program's ways to install a filter (sys/filter.h).  All that is
 * done is to look at it; what is called, and what it returns, is what comes next
 * for the name.
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "sys/filter.h"

long fg_syscall_watched(long nr, ...) __attribute__((visibility("hidden"), used));

FG_EXPORT(prctl);
int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	va_list args;
	int r;

	va_start(args, option);
	a = va_arg(args, unsigned long);
	b = va_arg(args, unsigned long);
	c = va_arg(args, unsigned long);
	d = va_arg(args, unsigned long);
	va_end(args);
	if (fg_unlikely(!fg_next_prctl))
		fg_next_find();
	if (fg_likely(option != PR_SET_SECCOMP))
		return fg_next_prctl(option, a, b, c, d);
	fg_filter_comes();
	r = fg_next_prctl(option, a, b, c, d);
	if (r < 0)
		fg_filter_failed();
	return r;
}

static bool installs(long nr, long a)
{
	return (nr == SYS_seccomp &&
		(a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
	       (nr == SYS_prctl && a == PR_SET_SECCOMP);
}

long fg_syscall_watched(long nr, ...)
{
	long a[6], r;
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (fg_unlikely(!fg_next_syscall))
		fg_next_find();
	if (!installs(nr, a[0]))
		return fg_next_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	fg_filter_comes();
	r = fg_next_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	/*
	 * Above 0: a descriptor that was asked for, or, with TSYNC, a thread that could not take
	 * the filter.
	 */
	if (r < 0 || (r > 0 && nr == SYS_seccomp && !(a[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER)))
		fg_filter_failed();
	return r;
}

#ifdef FG_FORWARD_SYSCALL
FG_FORWARD_SYSCALL(SYS_seccomp, SYS_prctl);
#else
extern __typeof__(fg_syscall_watched) exported __asm__("fg__syscall")
    __attribute__((alias("fg_syscall_watched")));
#endif
FG_VERSIONS_syscall("fg__syscall");
