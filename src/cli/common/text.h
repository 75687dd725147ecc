/* SPDX-License-Identifier: MIT */
/* Lines that fit a terminal. */
#ifndef FG_CLI_TEXT_H
#define FG_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define PROSE_COLUMNS 80      /* of an ordinary terminal */
int fg_columns(int fd);	      /* of the terminal; 0: it is none, and lines may be long */
bool fg_can_rewrite(int fd);  /* a terminal, and one that can take back what it shows */
int fg_prose_columns(int fd); /* the same, 80 at most */
int fg_help_columns(void);    /* of stdout: the same, 80 if it is no terminal */
/*
 * `text` with line breaks, so that no line is longer than `columns` (0: as it is) unless a word is.
 * The first line begins at column `at`, the others at `indent`.
 */
void fg_fold(char *out, size_t size, const char *text, int at, int indent, int columns);
/* A sentence and a newline on stdout: on a terminal as many lines as it takes. */
void fg_put_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Of a table: a row and a newline on stdout, on a terminal without what goes beyond its edge. */
void fg_put_row(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * What others have named, in place: control characters, which a terminal obeys, become '?'; also
 * those of Latin 1, and those that turn the direction of a line, as UTF-8 has them.
 */
void fg_make_printable(char *text);
/* Bytes of so many characters in front, or of all; in UTF-8, which need not be right. */
size_t fg_first(const char *text, int columns);
void fg_cut(char *text, int columns); /* ends in "..." where it was longer; 0: as it is */

#endif
