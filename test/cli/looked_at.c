/* SPDX-License-Identifier: MIT */
/*
 * looked-at execs: with FlexGuard's library preloaded, until somebody looks at the table of waits;
 * then it becomes another program, which has memory at the same address, and says whether that is
 * written to, when it is asked.
 * looked-at lies: its table shows counts whose sum is 0.
 * looked-at alternate: the same, at a place whose names are in another file (alternate.S).
 * looked-at FILE: its table shows waits all over FILE, which it cuts off and mends again.
 * looked-at turns: a thread's stack has no end, as its unwind table and registers tell it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/trace.h"

#define MS 1000

/* Whoever is in there was called from there, by the same registers. */
void turn(void);
#ifdef __x86_64__
#define RETURN_ADDRESS	16
#define IS_IN_REGISTERS ".cfi_same_value 16\n"
#else
#define RETURN_ADDRESS	30 /* of AArch64, where it is one of them anyhow */
#define IS_IN_REGISTERS ""
#endif
__asm__(".text\n"
	".type turn, %function\n"
	"turn:\n"
	".cfi_startproc\n" IS_IN_REGISTERS "nop\n"
	"nop\n"
	".cfi_endproc\n"
	".size turn, . - turn\n");

static _Noreturn void turn_for_ever(const struct fg_trace *t)
{
	struct fg_trace_stack *copy = &t->stacks->stack[0];
	uintptr_t pc = (uintptr_t)turn + 1;

	copy->caller = copy->pc = copy->reg[RETURN_ADDRESS] = pc;
	copy->weight_ns = copy->took_ns = 1;
	copy->bytes = sizeof(copy->stack);
	for (;;) {
		__atomic_store_n(&t->stacks->state[0], (uint32_t)FG_TRACE_FULL, __ATOMIC_RELEASE);
		usleep(MS);
	}
}

void alternate(void);

static _Noreturn void lie(volatile struct fg_trace *t, void (*function)(void))
{
	/* One caller, of two locks. */
	const struct fg_trace_entry half = {.lock = 1,
					    .caller = (uintptr_t)function + 1,
					    .count = 1ull << 63,
					    .total_ns = 1,
					    .max_ns = 1};

	for (;;) {
		for (int i = 0; i < 2; i++) {
			t->entry[i] = half;
			t->entry[i].lock = 1 + i;
		}
		usleep(MS);
	}
}

static int cut_off(volatile struct fg_trace *t, const char *file)
{
	int fd = open(file, O_RDWR);
	struct stat st;
	const char *mapped;
	char *content;

	if (fd < 0 || fstat(fd, &st))
		return 2;
	mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	content = malloc((size_t)st.st_size);
	if (mapped == MAP_FAILED || !content || pread(fd, content, st.st_size, 0) != st.st_size)
		return 2;
	puts("ready");
	fflush(stdout);
	while (!t->until_ns)
		usleep(MS);
	for (unsigned i = 0; i < FG_TRACE_ENTRIES; i++)
		t->entry[i] = (struct fg_trace_entry){.lock = i + 1,
						      .caller = (uintptr_t)mapped + 64ul * i,
						      .count = 1,
						      .total_ns = 1,
						      .max_ns = 1};
	for (;;) {
		if (ftruncate(fd, 4096))
			return 2;
		usleep(2 * MS);
		if (pwrite(fd, content, (size_t)st.st_size, 0) != st.st_size)
			return 2;
		usleep(2 * MS);
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
	if (argv[1][0] == '/')
		return cut_off(t, argv[1]);
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[1], "lies"))
		lie(t, turn);
	if (!strcmp(argv[1], "alternate"))
		lie(t, alternate);
	if (!strcmp(argv[1], "turns") && t->stacks)
		turn_for_ever((const struct fg_trace *)t);
	while (!t->until_ns)
		usleep(MS);
	unsetenv("LD_PRELOAD");
	snprintf(where, sizeof(where), "%lx", (unsigned long)t);
	execl("/proc/self/exe", argv[0], argv[1], where, (char *)NULL);
	return 2;
}
