/* SPDX-License-Identifier: MIT */
/*
 * The dynamic symbols of an object in memory: elf(5), and the hash tables that say how many there
 * are.
 */
#ifndef FG_ELF_SYMBOLS_H
#define FG_ELF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct fg_symbols {
	ElfW(Sym) * symbol; /* [0] is nobody's */
	const char *names;
	size_t count;
	ElfW(Addr) bias; /* from addresses in the file to those in memory */
};

/* False: it has none, or no table that says how many. */
bool fg_symbols_of(struct fg_symbols *s, const ElfW(Dyn) * dynamic, ElfW(Addr) bias);

#endif
