/* SPDX-License-Identifier: MIT */
/*
 * In the place of fg_kernel_root() in the command that cli-policies runs: /proc and /sys of another
 * kernel, recorded in the folder RECORDED.
 */
#include <stdlib.h>

#include "cli/commands/kernel_policy.h"

const char *fg_kernel_root(void)
{
	const char *root = getenv("RECORDED");

	return root ? root : "";
}
