/* SPDX-License-Identifier: MIT */
/* "did you mean": of some words the one that somebody may have meant who typed another. */
#ifndef FG_CLI_NEAREST_H
#define FG_CLI_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Of `list`, words with commas, bars or blanks between them, the one that `word` is the beginning
 * of or differs least from, in `nearest`.  False if none is near, or `word` begins several and is
 * near none.
 */
bool fg_nearest(const char *word, const char *list, char *nearest, size_t size);
/* "did you mean 'NEAREST'?", or "one of: LIST" where none is near. */
const char *fg_instead(const char *word, const char *list, char *text, size_t size);

#endif
