// SPDX-License-Identifier: MIT
/* Why no policy can be attached here, as far as it shows without trying. */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "monitor/needs.h"
#include "monitor/syncord.h"

const char *const fg_hook_name[FG_HOOKS] = {
    "lock_to_acquire",	      "lock_acquired",	      "lock_to_release", "lock_released",
    "lock_to_enter_slowpath", "lock_enable_fastpath", "should_reorder",	 "skip_reorder"};

int fg_policy_preflight(char *why, size_t size)
{
	struct fg_caps caps = fg_effective_caps();
	struct utsname u;

	uname(&u);
	if (!fg_has_btf() || !fg_btf_names("bpf_struct_ops_syncord_ops")) {
		snprintf(why, size,
			 "Linux %s has no SynCord: its locks take no policies (flexguard kernel "
			 "doctor says what it has)",
			 u.release);
		return -ENOTSUP;
	}
	if (!fg_caps_suffice(caps) || !caps.admin) {
		snprintf(why, size, "no permission to attach policies: run as root or grant %s",
			 caps.admin ? fg_caps_missing(caps) : "CAP_SYS_ADMIN");
		return -EPERM;
	}
	return 0;
}
