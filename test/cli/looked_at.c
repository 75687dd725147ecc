/* SPDX-License-Identifier: MIT */
/*
 * looked-at execs: with FlexGuard's library preloaded, until somebody looks at the table of waits;
 * then it becomes another program, which has memory at the same address, and says whether that is
 * written to, when it is asked.
 * looked-at lies: its table shows counts whose sum is 0.
 * looked-at alternate: the same, at a place whose names are in another file (alternate.S).
 * looked-at FILE: its table shows waits all over FILE, which it cuts off and mends again.
 * looked-at hangs: its table is a file of a file system of its own, whose reads are not answered.
 *   Exit status 77: it cannot have one.
 * looked-at turns: a thread's stack has no end, as its unwind table and registers tell it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

/* ---- FUSE, as far as it takes to map a file -------------------------------------- */

#define NODE 2

static int fuse;

static void answer(uint64_t unique, void *data, size_t size)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + size), .unique = unique};
	struct iovec iov[] = {{&head, sizeof(head)}, {data, size}};

	head.error = size ? 0 : -ENOSYS;
	if (writev(fuse, iov, 2) < 0)
		perror("fuse");
}

static void *serve_file(void *arg)
{
	static char request[1 << 20];
	const struct fuse_in_header *in = (const struct fuse_in_header *)request;
	struct fuse_attr attr = {.ino = NODE, .size = 1 << 24, .mode = S_IFREG | 0600, .nlink = 1};
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_entry_out entry = {
	    .nodeid = NODE, .attr = attr, .attr_valid = 1000, .entry_valid = 1000};
	struct fuse_attr_out found = {.attr = attr, .attr_valid = 1000};
	struct fuse_open_out opened = {0};

	while (read(fuse, request, sizeof(request)) > 0)
		switch (in->opcode) {
		case FUSE_INIT: answer(in->unique, &init, sizeof(init)); break;
		case FUSE_LOOKUP: answer(in->unique, &entry, sizeof(entry)); break;
		case FUSE_GETATTR: answer(in->unique, &found, sizeof(found)); break;
		case FUSE_OPEN: answer(in->unique, &opened, sizeof(opened)); break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_INTERRUPT: break;
		default: answer(in->unique, NULL, 0);
		}
	return arg;
}

/* Somewhere in the table: an answer to a look at all of it takes this. */
static int hang(const volatile struct fg_trace *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = ((uintptr_t)&t->entry[1] + page) & ~(page - 1);
	char options[100];
	pthread_t server;
	int file;

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse,
		 (int)geteuid(), (int)getegid());
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("hangs", "/tmp", "fuse", 0, options) ||
	    pthread_create(&server, NULL, serve_file, NULL))
		return 77;
	file = open("/tmp/file", O_RDWR | O_CLOEXEC);
	if (file < 0 || mmap((void *)at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			     file, 0) == MAP_FAILED)
		return 77;
	close(file); /* at the end that would wait for the server, which ends, too */
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
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
	if (!strcmp(argv[1], "hangs"))
		return hang(t);
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
