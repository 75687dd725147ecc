/* SPDX-License-Identifier: MIT */
#include "preload/native.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct {
	const char *name, *version;
} table[] = {
#define X(name, version, type) { #name, version },
	FG_NATIVE_TABLE(X)
#undef X
};

static void *found[FG_NATIVE_COUNT];

void *fg_native(enum fg_native_index which)
{
	void *f = __atomic_load_n(&found[which], __ATOMIC_RELAXED);

	if (f)
		return f;
	/* The baseline of the version differs between architectures; the default one is right elsewhere. */
	f = dlvsym(RTLD_NEXT, table[which].name, table[which].version);
	if (!f)
		f = dlsym(RTLD_NEXT, table[which].name);
	if (!f)
		abort();
	__atomic_store_n(&found[which], f, __ATOMIC_RELAXED);
	return f;
}
