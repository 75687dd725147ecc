/* SPDX-License-Identifier: MIT */
/* Numbers with units: for people, and from them. */
#ifndef FG_CLI_UNITS_H
#define FG_CLI_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "1.23 M" and "4.56 ms"; the buffer holds 24 bytes at least. */
const char *fg_human_count(char *buf, size_t size, double n);
const char *fg_human_ns(char *buf, size_t size, double ns);
/* "1.5", "300ms", "2s", "5min", "1h": 10^18 ns (32 years) at most; 0: it is no time above 0. */
uint64_t fg_duration_ns(const char *text);
/*
 * An integer from `low` to `high`: digits and nothing else, no sign, no space.  False: it is none,
 * and *value stays.
 */
bool fg_integer(const char *text, uint64_t low, uint64_t high, uint64_t *value);
bool fg_octal(const char *text, uint64_t low, uint64_t high, uint64_t *value);
/* Also with a unit of 1024s: "12K", "12M", "12G". */
bool fg_size(const char *text, uint64_t low, uint64_t high, uint64_t *value);

#endif
