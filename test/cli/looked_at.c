/* SPDX-License-Identifier: MIT */
/*
 * looked-at execs: with FlexGuard's library preloaded, until somebody looks at the table of waits;
 * then it becomes another program, which has memory at the same address, and says whether that is
 * written to, when it is asked.
 * looked-at lies: its table shows counts whose sum is 0.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/trace.h"

#define MS 1000

static _Noreturn void lie(volatile struct fg_trace *t)
{
	/* One caller, of two locks. */
	static const struct fg_trace_entry half = {
	    .lock = 1, .caller = 5, .count = 1ull << 63, .total_ns = 1, .max_ns = 1};

	for (;;) {
		for (int i = 0; i < 2; i++) {
			t->entry[i] = half;
			t->entry[i].lock = 1 + i;
		}
		usleep(MS);
	}
}

static int be_another(const char *where)
{
	unsigned long at = strtoul(where, NULL, 16), page = at & ~0xfffful;
	size_t size = sizeof(struct fg_trace) + 0x10000;
	const volatile unsigned char *memory = mmap((void *)page, size, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS |
							MAP_FIXED_NOREPLACE,
						    -1, 0);

	if (memory != (void *)page)
		return 77; /* the address is taken here */
	puts("another");
	fflush(stdout);
	getchar();
	for (size_t i = 0; i < size; i++)
		if (memory[i]) {
			puts("written to");
			return 1;
		}
	puts("untouched");
	return 0;
}

int main(int argc, char **argv)
{
	volatile struct fg_trace *t = dlsym(RTLD_DEFAULT, FG_TRACE_SYMBOL);
	char where[32];

	if (argc == 3)
		return be_another(argv[2]);
	if (argc != 2 || !t)
		return 2;
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[1], "lies"))
		lie(t);
	while (!t->until_ns)
		usleep(MS);
	unsetenv("LD_PRELOAD");
	snprintf(where, sizeof(where), "%lx", (unsigned long)t);
	execl("/proc/self/exe", argv[0], argv[1], where, (char *)NULL);
	return 2;
}
