/* SPDX-License-Identifier: MIT */
#include <flexguard.h>

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)
_Static_assert(!__builtin_strcmp(FG_VERSION, TEXT(FG_VERSION_MAJOR) "." TEXT(
						 FG_VERSION_MINOR) "." TEXT(FG_VERSION_PATCH)),
	       "header and meson.build disagree about the version");

int fg_version(void)
{
	return FG_VERSION_NUMBER;
}
