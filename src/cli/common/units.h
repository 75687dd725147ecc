/* SPDX-License-Identifier: MIT */
/* Numbers with units: for people, and from them. */
#ifndef FG_CLI_UNITS_H
#define FG_CLI_UNITS_H

#include <stddef.h>

/* "1.23 M" and "4.56 ms"; the buffer holds 24 bytes at least. */
const char *fg_human_count(char *buf, size_t size, double n);
const char *fg_human_ns(char *buf, size_t size, double ns);
/* "1.5", "300ms", "2s", "5min", "1h": seconds; negative: it is no time. */
double fg_seconds(const char *text);

#endif
