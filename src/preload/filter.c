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

/* Of prctl(2): the strict mode, and PR_SET_TSC, take the cycle counter. */
static bool takes_counter(int option, unsigned long a)
{
	return option == PR_SET_SECCOMP ? a == SECCOMP_MODE_STRICT :
					  option == PR_SET_TSC && a == PR_TSC_SIGSEGV;
}

/* What this call is: a filter, or what takes the counter; both, or none. */
static void comes(bool filter, bool counter)
{
	if (counter)
		fg_filter_takes_counter(true);
	if (filter)
		fg_filter_comes();
}

static void failed(bool filter, bool counter)
{
	if (filter)
		fg_filter_failed();
	if (counter)
		fg_filter_takes_counter(false);
}

FG_EXPORT(prctl);
int prctl(int option, ...)
{
	bool filter = option == PR_SET_SECCOMP, counter;
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
	counter = takes_counter(option, a);
	comes(filter, counter);
	r = fg_next_prctl(option, a, b, c, d);
	if (r < 0)
		failed(filter, counter);
	return r;
}

static bool installs(long nr, long a)
{
	return (nr == SYS_seccomp &&
		(a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)) ||
	       (nr == SYS_prctl && a == PR_SET_SECCOMP);
}

static bool takes(long nr, long a, long b)
{
	return nr == SYS_seccomp ? a == SECCOMP_SET_MODE_STRICT :
				   nr == SYS_prctl && takes_counter((int)a, (unsigned long)b);
}

long fg_syscall_watched(long nr, ...)
{
	bool filter, counter;
	long a[6], r;
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (fg_unlikely(!fg_next_syscall))
		fg_next_find();
	filter = installs(nr, a[0]);
	counter = takes(nr, a[0], a[1]);
	comes(filter, counter);
	r = fg_next_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	/*
	 * Above 0: a descriptor that was asked for, or, with TSYNC, a thread that could not take
	 * the filter.
	 */
	if (r < 0 || (r > 0 && nr == SYS_seccomp && !(a[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER)))
		failed(filter, counter);
	return r;
}

#ifdef FG_FORWARD_SYSCALL
FG_FORWARD_SYSCALL(SYS_seccomp, SYS_prctl);
#else
extern __typeof__(fg_syscall_watched) exported __asm__("fg__syscall")
    __attribute__((alias("fg_syscall_watched")));
#endif
FG_VERSIONS_syscall("fg__syscall");
