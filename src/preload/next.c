/* SPDX-License-Identifier: MIT */
#include "preload/next.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "sys/atomic.h"

int (*fg_next_prctl)(int option, ...);
long (*fg_next_syscall)(long nr, ...) __attribute__((used)); /* by assembly too */
int (*fg_next_register_atfork)(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			       void *dso);

static void *next(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

/*
 * Here if nobody needs them earlier.  Once: later, libc may give ours for its own (deepbind.c).
 */
__attribute__((constructor)) void fg_next_find(void)
{
	if (fg_next_prctl)
		return;
	fg_store_relaxed(&fg_next_syscall, (__typeof__(fg_next_syscall))next("syscall"));
	fg_next_register_atfork = (__typeof__(fg_next_register_atfork))next("__register_atfork");
	fg_next_prctl = (__typeof__(fg_next_prctl))next("prctl");
}
