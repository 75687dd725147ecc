/* SPDX-License-Identifier: MIT */
#include "sys/libc.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <stdlib.h>

#include "sys/atomic.h"

void *fg_libc_function(const char *name, const char *version)
{
	static void *libc;
	void *have = __atomic_load_n(&libc, __ATOMIC_RELAXED), *f;

	if (!have) {
		have = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
		if (!have)
			return NULL;
		__atomic_store_n(&libc, have, __ATOMIC_RELAXED);
	}
	f = version ? dlvsym(have, name, version) : dlsym(have, name);
	/*
	 * The baseline of the versions differs between architectures; the default one is right
	 * elsewhere.
	 */
	return f || !version ? f : dlsym(have, name);
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
