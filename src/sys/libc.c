/* SPDX-License-Identifier: MIT */
#include "sys/libc.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sys/atomic.h"

/*
 * The baseline of the versions differs between architectures; the default one is right elsewhere.
 * Not the one after the other: what is not found leaves a message, which is allocated.
 */
static void *look_up(void *in, const char *name, const char *version)
{
#ifdef __x86_64__
	if (version)
		return dlvsym(in, name, version);
#else
	(void)version;
#endif
	return dlsym(in, name);
}

/*
 * By a function that others have no reason to have.  Looked up, since its address by name may be in
 * the program, which is linked at a fixed place and takes it as well.
 */
static bool is_in_libc(void *f)
{
	void *of_libc = dlsym(RTLD_NEXT, "gnu_get_libc_version");
	struct dl_find_object its, libc;

	return of_libc && !_dl_find_object(f, &its) && !_dl_find_object(of_libc, &libc) &&
	       its.dlfo_link_map == libc.dlfo_link_map;
}

/*
 * dlopen() allocates, and it may be for malloc that a function is looked up, with a lock of its own
 * that we stand before: it would come back here and back.  So first what does not allocate, which
 * also finds what others behind us have of the name.
 */
void *fg_libc_function(const char *name, const char *version)
{
	static void *libc;
	void *have = __atomic_load_n(&libc, __ATOMIC_RELAXED), *f;

	if (!have) {
		f = look_up(RTLD_NEXT, name, version);
		if (f && is_in_libc(f))
			return f;
		have = dlopen(LIBC_SO, FG_LIBC_MODE);
		if (!have)
			return NULL;
		__atomic_store_n(&libc, have, __ATOMIC_RELAXED);
	}
	return look_up(have, name, version);
}

static const char *const names[] = {
#define X(name, type) #name,
    FG_LIBC_TABLE(X)
#undef X
};

static void *found[FG_LIBC_COUNT];

/* linked.c, or NULL */
extern void *const fg_libc_linked[] __attribute__((weak, visibility("hidden")));

void *fg_libc(enum fg_libc_index which)
{
	void *f = __atomic_load_n(&found[which], __ATOMIC_RELAXED);

	if (fg_likely(f != NULL))
		return f;
	f = fg_libc_function(names[which], NULL);
	if (!f && fg_libc_linked)
		f = fg_libc_linked[which];
	if (!f)
		abort();
	__atomic_store_n(&found[which], f, __ATOMIC_RELAXED);
	return f;
}

void fg_libc_setup(void)
{
	for (int i = 0; i < FG_LIBC_COUNT; i++)
		fg_libc((enum fg_libc_index)i);
}
