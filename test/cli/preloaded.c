/* SPDX-License-Identifier: MIT */
/*
 * A library to preload that does what allocators with stack traces do (tcmalloc by libunwind): it
 * opens a pipe when it is loaded, and at large allocations sends itself a byte through it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *malloc(size_t size);

static int ends[2] = {-1, -1};

__attribute__((constructor)) static void open_pipe(void)
{
	if (pipe(ends))
		abort();
}

void *malloc(size_t size)
{
	char byte = 0;

	if (size > 1 << 16 && ends[0] >= 0 && write(ends[1], &byte, 1) == 1)
		while (read(ends[0], &byte, 1) != 1)
			;
	return __libc_malloc(size);
}
