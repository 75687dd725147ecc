/* SPDX-License-Identifier: MIT */
/*
 * Of libflexguard.a: libc's functions by their names, for a program that is linked with -static and
 * has no libc to look into (libc.c).  Nobody can take the names there.
 */
#include "sys/libc.h"

extern void *const fg_libc_linked[];
__attribute__((visibility("hidden"))) void *const fg_libc_linked[] = {
#define X(name, type) (void *)name,
    FG_LIBC_TABLE(X)
#undef X
};
