// SPDX-License-Identifier: MIT
/* Why waits for the kernel's locks cannot be counted here, as far as it shows without trying. */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include "monitor/contention.h"
#include "monitor/needs.h"

int fg_contention_preflight(char *why, size_t size)
{
	struct fg_caps caps = fg_effective_caps();
	struct utsname u;

	uname(&u);
	if (!fg_release_is(u.release, FG_OLDEST_MAJOR, FG_OLDEST_MINOR)) {
		snprintf(why, size, "needs Linux %d.%d or later, and this is %s", FG_OLDEST_MAJOR,
			 FG_OLDEST_MINOR, u.release);
		return -ENOTSUP;
	}
	if (!fg_has_btf()) {
		snprintf(why, size,
			 "the kernel has no type information (" FG_BTF
			 "): it needs CONFIG_DEBUG_INFO_BTF=y");
		return -ENOTSUP;
	}
	if (!fg_btf_names("btf_trace_contention_begin")) {
		snprintf(why, size, "this kernel has no tracepoint lock:contention_begin");
		return -ENOTSUP;
	}
	if (!fg_caps_suffice(caps)) {
		snprintf(why, size, "no permission to load eBPF programs: run as root or grant %s",
			 fg_caps_missing(caps));
		return -EPERM;
	}
	if (fg_is_locked_down()) {
		snprintf(
		    why, size,
		    "kernel lockdown (confidentiality mode) forbids eBPF programs that read kernel memory");
		return -EPERM;
	}
	return 0;
}
