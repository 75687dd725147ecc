/* SPDX-License-Identifier: MIT */
/* Where the libraries are that belong to this command. */
#ifndef FG_CLI_LIBRARY_H
#define FG_CLI_LIBRARY_H

#include <stddef.h>

#define FG_PRELOAD_NAME "libflexguard-preload.so"
#define FG_ZOO_NAME	"libflexguard-zoo.so"

/*
 * Path of a library of ours, or NULL with a sentence in `why`; the second: one that LD_PRELOAD can
 * name.
 */
char *fg_library(const char *name, char *why, size_t why_size);
char *fg_preload_library(const char *name, char *why, size_t why_size);

#endif
