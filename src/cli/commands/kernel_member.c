/* SPDX-License-Identifier: MIT */
/* Where a lock lies in a type of the kernel, by its BTF. */
#include <errno.h>
#include <stdio.h>

#include "cli/commands/kernel_policy.h"

int fg_kernel_member(const char *type, const char *member, uint32_t *offset, char *leaf,
		     size_t leaf_size, char *why, size_t size)
{
	const struct fg_policy_calls *calls = fg_policy_calls(why, size);
	char path[4096];
	int n;

	if (!calls)
		return -ENOSYS;
	n = snprintf(path, sizeof(path), "%s/sys/kernel/btf/vmlinux", fg_kernel_root());
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return calls->member(*fg_kernel_root() ? path : NULL, type, member, offset, leaf, leaf_size,
			     why, size);
}
