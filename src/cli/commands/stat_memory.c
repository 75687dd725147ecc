/* SPDX-License-Identifier: MIT */
/* The memory of the process that `flexguard stat` looks at: who may debug it may do this. */
#include <errno.h>
#include <sys/uio.h>

#include "cli/commands/stat.h"

int fg_stat_transfer(const struct fg_stat_target *t, uint64_t there, void *here, size_t size,
		     bool out)
{
	struct iovec local = {here, size}, remote = {(void *)(uintptr_t)there, size};
	ssize_t n = out ? process_vm_writev(t->pid, &local, 1, &remote, 1, 0) :
			  process_vm_readv(t->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}
