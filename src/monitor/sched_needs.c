// SPDX-License-Identifier: MIT
/* Why the companion scheduler cannot be had here, as far as it shows without trying. */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "monitor/needs.h"
#include "monitor/scheduler.h"

int fg_sched_kernel(char *why, size_t size)
{
	int err = fg_need(FG_NEED_BTF, why, size);
	bool has = !err && fg_kernel_has(FG_HAS_SCHED_EXT);
	struct utsname u;

	/* The names that it has for moving threads since 6.13. */
	if (err || (has && fg_btf_names("scx_bpf_dsq_insert_vtime") &&
		    fg_btf_names("scx_bpf_dsq_move_to_local")))
		return err;
	uname(&u);
	snprintf(why, size, "Linux %s has %s sched_ext: it takes %s", u.release,
		 has ? "an older" : "no", fg_feature_text(FG_HAS_SCHED_EXT));
	return -ENOTSUP;
}

int fg_sched_preflight(char *why, size_t size)
{
	struct fg_caps caps = fg_effective_caps();
	int err = fg_sched_kernel(why, size);

	if (err)
		return err;
	/* CAP_SYS_ADMIN: the monitor's maps are looked up by their numbers. */
	if (!fg_caps_suffice(caps) || !caps.admin) {
		snprintf(why, size,
			 "no permission to replace the scheduler: run as root or grant %s",
			 caps.admin ? fg_caps_missing(caps) : "CAP_SYS_ADMIN");
		return -EPERM;
	}
	return 0;
}
