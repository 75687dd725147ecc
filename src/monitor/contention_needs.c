// SPDX-License-Identifier: MIT
/* Why waits for the kernel's locks cannot be counted here, as far as it shows without trying. */
#include <errno.h>
#include <stdio.h>
#include "monitor/contention.h"
#include "monitor/needs.h"

int fg_contention_preflight(char *why, size_t size)
{
	/* What the kernel lacks is said first: no privilege helps there. */
	int err = fg_need(FG_NEED_RELEASE, why, size);

	if (!err)
		err = fg_need(FG_NEED_BTF, why, size);
	if (!err && !fg_kernel_has(FG_HAS_WAITS)) {
		snprintf(why, size, "this kernel has no %s", fg_feature_text(FG_HAS_WAITS));
		err = -ENOTSUP;
	}
	return err ? err : fg_needs(why, size);
}
