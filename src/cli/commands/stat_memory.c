/* SPDX-License-Identifier: MIT */
/*
 * The memory of the process that `flexguard stat` looks at: who may debug it may do this.  By one
 * descriptor, which stays that memory's: after an exec, of a setuid program say, or when the number
 * is another process's, there is nothing behind it, and nobody else's memory is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands/stat.h"
#include "cli/common/query.h"

void fg_stat_open(struct fg_stat_target *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->pid);
	t->memory = open(path, O_RDWR | O_CLOEXEC);
	if (t->memory < 0)
		t->memory = -errno;
	t->ahead_ns = fg_clock_ahead_ns(t->pid);
}

void fg_stat_close(struct fg_stat_target *t)
{
	if (t->memory >= 0)
		close(t->memory);
}

int fg_stat_transfer(const struct fg_stat_target *t, uint64_t there, void *here, size_t size,
		     bool out)
{
	ssize_t n;

	if (t->memory < 0)
		return t->memory;
	n = out ? pwrite(t->memory, here, size, (off_t)there) :
		  pread(t->memory, here, size, (off_t)there);
	if (n < 0)
		return errno == EIO ? -EFAULT : -errno;
	if (!n && size)
		return -ESRCH;
	return (size_t)n == size ? 0 : -EFAULT;
}
