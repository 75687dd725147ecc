/* SPDX-License-Identifier: MIT */
/* A library to preload that has a syscall() of its own, and passes all calls on. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>

long syscall(long nr, ...)
{
	static long (*next)(long nr, ...);
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "syscall");
	if (!next)
		abort();
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
