/* SPDX-License-Identifier: MIT */
/* Names of addresses in another process, by elfutils' libdw (debug information, symbol tables). */
#include "cli/commands/stat.h"

#include <stdio.h>

#ifdef FG_HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct fg_symbols {
	Dwfl *dwfl;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size)
{
	struct fg_symbols *s = calloc(1, sizeof(*s));
	int err = -1;

	if (!s) {
		snprintf(why, size, "out of memory");
		return NULL;
	}

	/*
	 * Not over the network, whatever DEBUGINFOD_URLS says: this is a look at a running program.
	 */
	setenv("DEBUGINFOD_URLS", "", 1);
	s->dwfl = dwfl_begin(&callbacks);
	if (s->dwfl)
		err = dwfl_linux_proc_report(s->dwfl, pid);
	if (err || dwfl_report_end(s->dwfl, NULL, NULL)) {
		snprintf(why, size, "cannot read the mappings of process %d: %s", (int)pid,
			 err > 0 ? strerror(err) : "libdw says no more");
		fg_symbols_close(s);
		return NULL;
	}
	return s;
}

void fg_symbols_close(struct fg_symbols *s)
{
	if (s && s->dwfl)
		dwfl_end(s->dwfl);
	free(s);
}

struct wanted {
	const char *name;
	uint64_t address;
};

static int look(Dwfl_Module *module, void **data, const char *file, Dwarf_Addr start, void *arg)
{
	struct wanted *w = arg;
	GElf_Sym sym;
	GElf_Addr at;
	int n;

	(void)data, (void)start;
	/* Only in ours: to read every symbol table of a large program takes seconds. */
	if (!file || !strstr(file, "libflexguard"))
		return DWARF_CB_OK;
	n = dwfl_module_getsymtab(module);
	for (int i = 1; i < n; i++) {
		const char *name = dwfl_module_getsym_info(module, i, &sym, &at, NULL, NULL, NULL);

		if (name && !strcmp(name, w->name) && sym.st_shndx != SHN_UNDEF) {
			w->address = at;
			return DWARF_CB_ABORT;
		}
	}
	return DWARF_CB_OK;
}

uint64_t fg_symbols_find(struct fg_symbols *s, const char *name)
{
	struct wanted w = {.name = name};

	dwfl_getmodules(s->dwfl, look, &w, 0);
	return w.address;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static Dwfl_Module *module_at(struct fg_symbols *s, uint64_t address, const char **file,
			      uint64_t *start)
{
	Dwfl_Module *m = dwfl_addrmodule(s->dwfl, address);
	Dwarf_Addr low = 0;
	const char *path = NULL, *name;

	if (!m)
		return NULL;
	name = dwfl_module_info(m, NULL, &low, NULL, NULL, NULL, &path, NULL);
	*file = base_name(path ? path : name);
	*start = low;
	return m;
}

static bool name_at(Dwfl_Module *m, uint64_t address, bool code, char *text, size_t size)
{
	GElf_Off offset;
	GElf_Sym sym;
	const char *name = dwfl_module_addrinfo(m, address, &offset, &sym, NULL, NULL, NULL);

	if (!name || (GELF_ST_TYPE(sym.st_info) == STT_FUNC) != code)
		return false;
	if (offset)
		snprintf(text, size, "%s+0x%" PRIx64, name, (uint64_t)offset);
	else
		snprintf(text, size, "%s", name);
	return true;
}

void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	const char *file = NULL, *source;
	uint64_t start = 0;
	Dwfl_Module *m = module_at(s, address - 1, &file, &start);
	Dwfl_Line *line;
	int number = 0;
	size_t len;

	if (!m) {
		snprintf(text, size, "0x%" PRIx64, address);
		return;
	}
	/* A return address: the call is before it. */
	if (!name_at(m, address - 1, true, text, size))
		snprintf(text, size, "%s+0x%" PRIx64, file, address - start);
	len = strlen(text);
	line = dwfl_module_getsrc(m, address - 1);
	source = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (source)
		snprintf(text + len, size - len, " (%s:%d)", base_name(source), number);
	else if (!strchr(text, '.') && file)
		snprintf(text + len, size - len, " (%s)", file);
}

void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	const char *file = NULL;
	uint64_t start = 0;
	Dwfl_Module *m = module_at(s, address, &file, &start);

	if (!m || !name_at(m, address, false, text, size))
		snprintf(text, size, "0x%" PRIx64, address);
}

#else

struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size)
{
	(void)pid;
	snprintf(why, size, "built without libdw (elfutils)");
	return NULL;
}

void fg_symbols_close(struct fg_symbols *s)
{
	(void)s;
}

uint64_t fg_symbols_find(struct fg_symbols *s, const char *name)
{
	(void)s, (void)name;
	return 0;
}

void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	(void)s, (void)address;
	*text = '\0', (void)size;
}

void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size)
{
	(void)s, (void)address;
	*text = '\0', (void)size;
}

#endif
