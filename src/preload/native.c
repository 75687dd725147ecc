/* SPDX-License-Identifier: MIT */
#include "preload/native.h"

#include <stdlib.h>

#include "sys/libc.h"

static const struct {
	const char *name, *version;
} table[] = {
#define X(name, version, type) {#name, version},
    FG_NATIVE_TABLE(X)
#undef X
};

static void *found[FG_NATIVE_COUNT];

void *fg_native(enum fg_native_index which)
{
	void *f = __atomic_load_n(&found[which], __ATOMIC_RELAXED);

	if (f)
		return f;
	f = fg_libc_function(table[which].name, table[which].version);
	if (!f)
		abort();
	__atomic_store_n(&found[which], f, __ATOMIC_RELAXED);
	return f;
}

/* Here and not on a lock path, where they may still be looked for before this has run. */
__attribute__((constructor)) static void find_all(void)
{
	for (int i = 0; i < FG_NATIVE_COUNT; i++)
		if (!found[i])
			found[i] = fg_libc_function(table[i].name, table[i].version);
}
