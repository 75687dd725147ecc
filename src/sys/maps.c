/* SPDX-License-Identifier: MIT */
#include "sys/maps.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "sys/descriptor.h"

/* Reads one byte at a time from what the kernel gives in larger pieces. */
struct reader {
	long fd, have, next;
	char piece[1024];
};

static int next_char(struct reader *r)
{
	if (r->next == r->have) {
		r->have = fg_syscall6(SYS_read, r->fd, (long)r->piece, sizeof(r->piece), 0, 0, 0);
		r->next = 0;
		if (r->have <= 0) {
			r->have = 0;
			return -1;
		}
	}
	return (unsigned char)r->piece[r->next++];
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number that ends before the next other character, which is read too. */
static uint64_t next_hex(struct reader *r)
{
	uint64_t n = 0;
	int d;

	while ((d = hex_digit(next_char(r))) >= 0)
		n = n << 4 | (uint64_t)d;
	return n;
}

/* A line: "start-end rwxs offset device inode path".  False at the end. */
static bool next_line(struct reader *r, uint64_t address, bool *found, bool *shared)
{
	uint64_t start = next_hex(r), end = next_hex(r);
	int c = -1, i;

	for (i = 0; i < 4; i++)
		c = next_char(r);
	*found = start <= address && address < end;
	*shared = c == 's';
	while (c >= 0 && c != '\n')
		c = next_char(r);
	return c >= 0;
}

bool fg_is_shared_memory(uint64_t address)
{
	long fd = fg_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC,
			      0, 0, 0);
	struct reader r = {.fd = fg_descriptor_high(fd)};
	bool found = false, shared = false;

	if (r.fd < 0)
		return false;
	while (!found && next_line(&r, address, &found, &shared))
		;
	fg_syscall6(SYS_close, r.fd, 0, 0, 0, 0, 0);
	return found && shared;
}
