/* SPDX-License-Identifier: MIT */
/*
 * Of libflexguard.a only.  libc's functions by their names, for a program that is linked with
 * -static and has no libc to look into (libc.c); nobody can take the names there.  And what the
 * shared libraries have by -z nodelete: threads that have locked call the runtime when they end, so
 * a plugin that it is part of stays after dlclose().
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "sys/libc.h"

extern void *const fg_libc_linked[];
__attribute__((visibility("hidden"))) void *const fg_libc_linked[] = {
#define X(name, type) (void *)name,
    FG_LIBC_TABLE(X)
#undef X
};

__attribute__((constructor)) static void stay(void)
{
	int saved = errno;
	struct dl_find_object here;

	/* A program has no name, and stays anyway. */
	if (!_dl_find_object((void *)fg_libc_linked, &here) && here.dlfo_link_map->l_name[0])
		dlopen(here.dlfo_link_map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	errno = saved;
}
