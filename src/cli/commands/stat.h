/* SPDX-License-Identifier: MIT */
/* What `flexguard stat` (stat.c) asks of the program's symbols (stat_symbols.c). */
#ifndef FG_CLI_STAT_H
#define FG_CLI_STAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fg_symbols;

/* Of a running process.  NULL and one sentence in `why`. */
struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size);
void fg_symbols_close(struct fg_symbols *s);

/* Where an exported object lies in the process; 0: it has none of that name. */
uint64_t fg_symbols_find(struct fg_symbols *s, const char *name);
/* "function+0x12 (file.c:34)", as far as it is known; at the worst the address. */
void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size);
/* "object+0x8"; the address, if it is in no object that has a name. */
void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size);

#endif
