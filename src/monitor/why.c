// SPDX-License-Identifier: MIT
/*
 * Why the monitor cannot run here.  The kernel says EPERM for five different
 * things and EINVAL for the rest, so look at the causes one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "monitor/internal.h"
#include "monitor/namespace.h"
#include "monitor/needs.h"

/* Docker's filter answers bpf() with EPERM, podman's and others' with ENOSYS. */
static bool is_filtered(void)
{
	unsigned mode = 0;
	char line[128];
	FILE *f = fopen("/proc/thread-self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %u", &mode) == 1)
			break;
	if (f)
		fclose(f);
	return mode != 0;
}

int fg_why_release(const char *release, char *why, size_t size)
{
	if (fg_release_is(release, FG_OLDEST_MAJOR, FG_OLDEST_MINOR))
		return 0;
	snprintf(
	    why, size,
	    "the monitor needs Linux %d.%d or later and this is %s, so programs run on the fallback",
	    FG_OLDEST_MAJOR, FG_OLDEST_MINOR, release);
	return -ENOTSUP;
}

int fg_monitor_preflight(char *why, size_t size)
{
	struct fg_caps caps = fg_effective_caps();
	struct utsname u;

	uname(&u);
	if (fg_why_release(u.release, why, size))
		return -ENOTSUP;
	if (!fg_has_btf()) {
		snprintf(why, size,
			 "the kernel has no type information (" FG_BTF "): it needs "
			 "CONFIG_DEBUG_INFO_BTF=y%s",
			 access("/sys/kernel", F_OK) ? ", or /sys is not mounted" : "");
		return -ENOTSUP;
	}
	if (!fg_caps_suffice(caps)) {
		snprintf(why, size, "no permission to load eBPF programs: run as root or grant %s",
			 fg_caps_missing(caps));
		return -EPERM;
	}
	return 0;
}

int fg_why_load(int err, char *why, size_t size)
{
	/* Its helpers are then unknown, which is one error or another. */
	if (fg_is_locked_down()) {
		snprintf(
		    why, size,
		    "kernel lockdown (confidentiality mode) forbids eBPF programs that read kernel memory");
		return -EPERM;
	}
	switch (err) {
	case -EPERM:
		snprintf(
		    why, size,
		    is_filtered() ?
			"a seccomp filter forbids the bpf() system call here, or a security module does: "
			"run `flexguard monitor` outside the container and share its socket" :
		    fg_in_first_user_namespace() ?
			"the kernel refused the eBPF program in spite of CAP_BPF and CAP_PERFMON (a "
			"security module?)" :
			"no permission to load eBPF programs: the capabilities of a user namespace do not "
			"count; start a monitor outside of it (flexguard monitor)");
		return -EPERM;
	case -ENOMEM:
		snprintf(why, size, "not enough kernel memory for the monitor's eBPF maps");
		return -ENOMEM;
	case -EMFILE:
	case -ENFILE:
		snprintf(why, size,
			 "no free file descriptors for the monitor's eBPF maps: raise `ulimit -n`");
		return err;
	case -ENOSYS: /* a kernel with the call has its switch in /proc */
		snprintf(
		    why, size,
		    !access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK) ?
			"a seccomp filter answers for the bpf() system call here: run `flexguard monitor` "
			"outside the container and share its socket, or allow bpf()" :
			"the kernel was built without the bpf() system call (CONFIG_BPF_SYSCALL)");
		return -ENOTSUP;
	default:
		snprintf(
		    why, size,
		    "this kernel does not accept the monitor's eBPF program (%s); FLEXGUARD_VERBOSE=2 "
		    "shows its reasons",
		    strerror(-err));
		return -ENOTSUP;
	}
}
