/* SPDX-License-Identifier: MIT */
/*
 * dlopen() with RTLD_DEEPBIND: the plugin's references go to itself and what it depends on before
 * the program's, so to libc's locks, while the program's go to ours: two implementations of one
 * mutex.  Without the flag, the plugin would get the program's functions instead of its own of the
 * same name, for which it was given.  So before the first of them is opened, our functions take the
 * place of libc's in libc's own symbol table (elf(5), DT_SYMTAB), in memory: every search there
 * finds ours, those of a plugin's constructors included, and everything else stays as the program
 * wants it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "lock/once.h"
#include "preload/native.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "runtime/environment.h"
#include "sys/elf_symbols.h"
#include "sys/libc.h"

/*
 * libc looks at the address that it returns to: for whose sake it searches, and where.  So these
 * end in a jump.
 */
#ifdef __clang__
#define ENDS_IN_A_JUMP
#define JUMP __attribute__((musttail)) return
#else
#define ENDS_IN_A_JUMP __attribute__((optimize("O2", "optimize-sibling-calls")))
#define JUMP	       return
#endif

static void *(*next_dlopen)(const char *file, int mode);
static void *(*next_dlmopen)(Lmid_t space, const char *file, int mode);
static bool replaced;

__attribute__((constructor)) static void find(void)
{
	if (next_dlmopen)
		return;
	next_dlopen = (__typeof__(next_dlopen))dlsym(RTLD_NEXT, "dlopen");
	next_dlmopen = (__typeof__(next_dlmopen))dlsym(RTLD_NEXT, "dlmopen");
	if (!next_dlopen || !next_dlmopen)
		abort();
}

static bool symbols_at(const void *address, struct fg_symbols *s)
{
	struct link_map *map;
	Dl_info info;

	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) &&
	       fg_symbols_of(s, map->l_ld, map->l_addr);
}

struct segment {
	uintptr_t address;
	int protection; /* -1: not found */
};

static int look_for_segment(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct segment *s = arg;

	(void)size;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type == PT_LOAD &&
		    s->address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz) {
			s->protection = (p->p_flags & PF_R ? PROT_READ : 0) |
					(p->p_flags & PF_W ? PROT_WRITE : 0) |
					(p->p_flags & PF_X ? PROT_EXEC : 0);
			return 1;
		}
	}
	return 0;
}

/* Sets the protection of a table to what it is in the file, and `more`. */
static bool protect(const struct fg_symbols *s, int more)
{
	struct segment of = {.address = (uintptr_t)s->symbol, .protection = -1};
	uintptr_t page = getauxval(AT_PAGESZ), begin = of.address & -page;
	uintptr_t end = ((uintptr_t)&s->symbol[s->count] + page - 1) & -page;

	dl_iterate_phdr(look_for_segment, &of);
	return of.protection >= 0 && !fg_syscall6(SYS_mprotect, (long)begin, (long)(end - begin),
						  of.protection | more, 0, 0, 0);
}

/*
 * All versions of the name that are the function of its default one; what has another function
 * stays libc's.
 */
static void replace(struct fg_symbols *libc, const char *name, ElfW(Addr) ours)
{
	ElfW(Addr) theirs = (ElfW(Addr))fg_libc_function(name, NULL);

	for (size_t i = 1; theirs && i < libc->count; i++) {
		ElfW(Sym) *s = &libc->symbol[i];

		if (s->st_shndx != SHN_UNDEF && s->st_value + libc->bias == theirs &&
		    !strcmp(libc->names + s->st_name, name))
			__atomic_store_n(&s->st_value, ours - libc->bias, __ATOMIC_RELAXED);
	}
}

static void replace_all(void)
{
	struct fg_symbols ours, libc;

	/* From here on it is ours that libc says are its own. */
	for (int i = 0; i < FG_NATIVE_COUNT; i++)
		fg_native((enum fg_native_index)i);
	fg_libc_setup();
	fg_next_find();
	if (!symbols_at((const void *)&replaced, &ours) ||
	    !symbols_at((const void *)fg_native(FG_NATIVE_pthread_mutex_lock), &libc) ||
	    !protect(&libc, PROT_WRITE))
		return;
	for (size_t i = 1; i < ours.count; i++) {
		const ElfW(Sym) *s = &ours.symbol[i];

		if (s->st_shndx != SHN_UNDEF && (s->st_info & 15) == STT_FUNC)
			replace(&libc, ours.names + s->st_name, s->st_value + ours.bias);
	}
	protect(&libc, 0);
	replaced = true;
}

/*
 * The mode to open with.  Where the table cannot be written to, mutual exclusion comes before what
 * the flag is for.
 */
static __attribute__((noinline)) int deeply(int mode)
{
	static const char note[] =
	    "flexguard: RTLD_DEEPBIND is left out: glibc's table of symbols cannot be changed "
	    "here, and the plugin would have locks of its own\n";
	static uint32_t once, said;

	find();
	_fg_once(&once, replace_all);
	if (replaced)
		return mode;
	if (!fg_silent && !fg_xchg_acq_rel(&said, 1))
		fg_syscall6(SYS_write, 2, (long)note, sizeof(note) - 1, 0, 0, 0);
	return mode & ~RTLD_DEEPBIND;
}

FG_EXPORT(dlopen);
ENDS_IN_A_JUMP void *dlopen(const char *file, int mode)
{
	if (fg_unlikely(mode & RTLD_DEEPBIND))
		mode = deeply(mode);
	else if (fg_unlikely(!next_dlopen))
		find();
	JUMP next_dlopen(file, mode);
}

FG_EXPORT(dlmopen);
ENDS_IN_A_JUMP void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (fg_unlikely(mode & RTLD_DEEPBIND))
		mode = deeply(mode);
	else if (fg_unlikely(!next_dlmopen))
		find();
	JUMP next_dlmopen(space, file, mode);
}
