// SPDX-License-Identifier: MIT
/* Why no policy can be attached here, as far as it shows without trying. */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "monitor/needs.h"
#include "monitor/syncord.h"

const char *const fg_hook_name[FG_HOOKS] = {FG_POLICY_HOOKS};

int fg_policy_preflight(char *why, size_t size)
{
	struct fg_caps caps = fg_effective_caps();
	struct utsname u;

	uname(&u);
	if (!fg_has_btf() || !fg_btf_names("bpf_struct_ops_" FG_POLICY_OPS)) {
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
