/* SPDX-License-Identifier: MIT */
/*
 * memcpy() and memset() of the library's own, since the compiler calls them where
 * the source has no call: libc's are names that others can take (libc.h).  Where time
 * counts it copies inline.  Not in libflexguard.a: there these would be the whole program's, in
 * place of libc's and of a sanitizer's.
 */
#undef _FORTIFY_SOURCE /* its own inline definitions of the two would stand before these */
#include <string.h>

/* Or the compiler would make these loops calls of themselves. */
#ifdef __clang__
#define AS_WRITTEN __attribute__((no_builtin("memcpy", "memset")))
#else
#define AS_WRITTEN __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

extern __typeof__(memcpy) memcpy __attribute__((visibility("hidden")));
extern __typeof__(memset) memset __attribute__((visibility("hidden")));

AS_WRITTEN void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

AS_WRITTEN void *memset(void *at, int value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)at)[i] = (char)value;
	return at;
}
