/* SPDX-License-Identifier: MIT */
/*
 * dlopen() with RTLD_DEEPBIND: the plugin's references go to itself and what it depends on before
 * the program's, so to libc's locks, while the program's go to ours: two implementations of one
 * mutex.  Without the flag, the plugin would get the program's functions instead of its own of the
 * same name, for which it was given.  So before the first of them is opened, our functions take the
 * place of libc's in libc's own symbol table (elf(5), DT_SYMTAB), in memory: every search there
 * finds ours, those of a plugin's constructors included, and everything else stays as the program
 * wants it.
 *
 * And dlopen() of libc itself, as foreign function interfaces call it: a lock that is looked up by
 * that handle would be libc's, on an object that is ours by name; and it would be ours as soon as
 * there is such a plugin, with a mutex that libc has locked by then.  So our functions take that
 * place first.
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
#include "lock/epoch.h"
#include "preload/native.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "runtime/environment.h"
#include "sys/elf_symbols.h"
#include "sys/filter.h"
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
static bool replaced, tried; /* the second: also where the table cannot be written to */

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

static bool segment_of(const struct fg_symbols *s, struct segment *of)
{
	*of = (struct segment){.address = (uintptr_t)s->symbol, .protection = -1};
	dl_iterate_phdr(look_for_segment, of);
	return of->protection >= 0;
}

static bool protect(const struct fg_symbols *s, int protection)
{
	uintptr_t page = getauxval(AT_PAGESZ), begin = (uintptr_t)s->symbol & -page;
	uintptr_t end = ((uintptr_t)&s->symbol[s->count] + page - 1) & -page;

	return !fg_syscall6(SYS_mprotect, (long)begin, (long)(end - begin), protection, 0, 0, 0);
}

/*
 * What of ours calls the next of its name, and that one.  In a library behind ours it may look for
 * its own next one, libc's, as late as it is called, and would find us: what calls such a one stays
 * out of libc's table.
 */
static void *next_of(const char *name)
{
	const struct {
		const char *name;
		void *function;
	} next[] = {{"dlopen", (void *)next_dlopen},
		    {"dlmopen", (void *)next_dlmopen},
		    {"prctl", (void *)fg_next_prctl},
		    {"syscall", (void *)fg_next_syscall},
		    {"__register_atfork", (void *)fg_next_register_atfork}};

	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++)
		if (!strcmp(name, next[i].name))
			return next[i].function;
	return NULL;
}

/*
 * All versions of the name that are the function of its default one; what has another function
 * stays libc's.
 */
static void replace(struct fg_symbols *libc, const char *name, ElfW(Addr) theirs, ElfW(Addr) ours)
{
	for (size_t i = 1; i < libc->count; i++) {
		ElfW(Sym) *s = &libc->symbol[i];

		if (s->st_shndx != SHN_UNDEF && s->st_value + libc->bias == theirs &&
		    !strcmp(libc->names + s->st_name, name))
			__atomic_store_n(&s->st_value, ours - libc->bias, __ATOMIC_RELAXED);
	}
}

/*
 * A plugin is mapped and protected by libc itself.  But libc is there, and to open it takes no
 * call: a filter of the program's own need not let one pass.
 */
static bool may_protect(bool deep)
{
	return deep || !fg_filter_is_own();
}

/*
 * Under a lock only what calls nobody: whoever comes from a constructor has the loader's lock, for
 * which others wait in dlsym().  Two threads may have looked up the same things before; what the
 * later one has found, ours for libc's perhaps, changes nothing.
 */
static void replace_all(bool deep)
{
	struct fg_symbols ours, libc;
	struct segment of;
	bool taken, counts;

	/* From here on it is ours that libc says are its own. */
	for (int i = 0; i < FG_NATIVE_COUNT; i++)
		fg_native((enum fg_native_index)i);
	fg_libc_setup();
	fg_next_find();
	find();
	if (!symbols_at((const void *)&replaced, &ours) ||
	    !symbols_at((const void *)fg_native(FG_NATIVE_pthread_mutex_lock), &libc) ||
	    !segment_of(&libc, &of))
		return;

	ElfW(Addr) theirs[ours.count]; /* 0: stays */

	memset(theirs, 0, sizeof(theirs));
	for (size_t i = 1; i < ours.count; i++) {
		const ElfW(Sym) *s = &ours.symbol[i];
		const char *name = ours.names + s->st_name;
		void *f, *next;

		if (s->st_shndx == SHN_UNDEF || (s->st_info & 15) != STT_FUNC ||
		    !strncmp(name, "fg_", 3))
			continue;
		f = fg_libc_function(name, NULL);
		next = next_of(name);
		if (!next || next == f)
			theirs[i] = (ElfW(Addr))f;
	}

	taken = _fg_epoch_lock();
	counts = fg_call_begins(0);
	if (!tried && may_protect(deep)) {
		if (protect(&libc, of.protection | PROT_WRITE)) {
			for (size_t i = 1; i < ours.count; i++)
				if (theirs[i])
					replace(&libc, ours.names + ours.symbol[i].st_name,
						theirs[i], ours.symbol[i].st_value + ours.bias);
			protect(&libc, of.protection);
			replaced = true;
		}
		fg_store_release(&tried, true);
	}
	if (counts)
		fg_call_ends(0);
	_fg_epoch_unlock(taken);
}

static bool is_replaced(bool deep)
{
	/* pairs with the release of whoever was through with it */
	if (!fg_load_acquire(&tried) && may_protect(deep))
		replace_all(deep);
	return replaced;
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
	static uint32_t said;

	if (is_replaced(true))
		return mode;
	if (!fg_silent && !fg_xchg_acq_rel(&said, 1))
		fg_syscall6(SYS_write, 2, (long)note, sizeof(note) - 1, 0, 0, 0);
	return mode & ~RTLD_DEEPBIND;
}

/* Libc, or what was a part of it.  Not where one of ours asks for it, for its own functions. */
static bool is_libc(const char *file, int mode)
{
	const char *slash;

	if (!file || mode == FG_LIBC_MODE)
		return false;
	slash = strrchr(file, '/');
	if (slash)
		file = slash + 1;
	return !strncmp(file, "libc.so.", 8) || !strncmp(file, "libpthread.so.", 14);
}

/* Before each of them; the mode to open with. */
static int prepare(const char *file, int mode)
{
	if (fg_unlikely(is_libc(file, mode)))
		is_replaced(false);
	else if (fg_unlikely(mode & RTLD_DEEPBIND))
		return deeply(mode);
	return mode;
}

FG_EXPORT(dlopen);
ENDS_IN_A_JUMP void *dlopen(const char *file, int mode)
{
	mode = prepare(file, mode);
	if (fg_unlikely(!next_dlopen))
		find();
	JUMP next_dlopen(file, mode);
}

FG_EXPORT(dlmopen);
ENDS_IN_A_JUMP void *dlmopen(Lmid_t space, const char *file, int mode)
{
	mode = prepare(file, mode);
	if (fg_unlikely(!next_dlmopen))
		find();
	JUMP next_dlmopen(space, file, mode);
}
