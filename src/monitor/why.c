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

#define CAP_BIT_SYS_ADMIN (1ull << 21)
#define CAP_BIT_PERFMON	  (1ull << 38)
#define CAP_BIT_BPF	  (1ull << 39)

/* The value that proc(5) has for this thread, or `otherwise`. */
static unsigned long long status_field(const char *format, unsigned long long otherwise)
{
	unsigned long long value = otherwise;
	char line[128];
	FILE *f = fopen("/proc/thread-self/status", "re");

	if (!f)
		return otherwise;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, format, &value) == 1)
			break;
	fclose(f);
	return value;
}

static unsigned long long effective_caps(void)
{
	return status_field("CapEff: %llx", ~0ull);
}

/* Docker's filter answers bpf() with EPERM, podman's and others' with ENOSYS. */
static bool is_filtered(void)
{
	return status_field("Seccomp: %llx", 0) != 0;
}

/* Lockdown forbids what every tracing program needs: reading kernel memory. */
static bool locked_down(void)
{
	char line[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, "[confidentiality]");
}

/* False too for one that cannot be read.  Distributions that took newer code into an older kernel lose a little. */
bool fg_release_is(const char *release, int major, int minor)
{
	int have[2];

	if (sscanf(release, "%d.%d", &have[0], &have[1]) != 2)
		return false;
	return have[0] > major || (have[0] == major && have[1] >= minor);
}

/* The oldest that it was tried on (make kernels); what is older is refused, since a fault here stops the machine. */
int fg_why_release(const char *release, char *why, size_t size)
{
	if (fg_release_is(release, 6, 1))
		return 0;
	snprintf(why, size,
		 "the monitor needs Linux 6.1 or later and this is %s, so programs run on the fallback",
		 release);
	return -ENOTSUP;
}

int fg_monitor_preflight(char *why, size_t size)
{
	unsigned long long caps = effective_caps();
	struct utsname u;

	uname(&u);
	if (fg_why_release(u.release, why, size))
		return -ENOTSUP;
	if (access("/sys/kernel/btf/vmlinux", F_OK)) {
		snprintf(why, size,
			 "the kernel has no type information (/sys/kernel/btf/vmlinux): it needs "
			 "CONFIG_DEBUG_INFO_BTF=y%s",
			 access("/sys/kernel", F_OK) ? ", or /sys is not mounted" : "");
		return -ENOTSUP;
	}
	if (!(caps & CAP_BIT_SYS_ADMIN) &&
	    (caps & (CAP_BIT_BPF | CAP_BIT_PERFMON)) != (CAP_BIT_BPF | CAP_BIT_PERFMON)) {
		snprintf(why, size, "no permission to load eBPF programs: run as root or grant %s%s%s",
			 caps & CAP_BIT_BPF ? "" : "CAP_BPF",
			 caps & (CAP_BIT_BPF | CAP_BIT_PERFMON) ? "" : " and ",
			 caps & CAP_BIT_PERFMON ? "" : "CAP_PERFMON");
		return -EPERM;
	}
	return 0;
}

int fg_why_load(int err, char *why, size_t size)
{
	/* Its helpers are then unknown, which is one error or another. */
	if (locked_down()) {
		snprintf(why, size,
			 "kernel lockdown (confidentiality mode) forbids eBPF programs that read kernel memory");
		return -EPERM;
	}
	switch (err) {
	case -EPERM:
		snprintf(why, size,
			 is_filtered()
				 ? "a seccomp filter forbids the bpf() system call here, or a security module does: "
				   "run `flexguard monitor` outside the container and share its socket"
			 : fg_in_first_user_namespace()
				 ? "the kernel refused the eBPF program in spite of CAP_BPF and CAP_PERFMON (a "
				   "security module?)"
				 : "no permission to load eBPF programs: the capabilities of a user namespace do not "
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
		snprintf(why, size,
			 !access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK) ?
				 "a seccomp filter answers for the bpf() system call here: run `flexguard monitor` "
				 "outside the container and share its socket, or allow bpf()" :
				 "the kernel was built without the bpf() system call (CONFIG_BPF_SYSCALL)");
		return -ENOTSUP;
	default:
		snprintf(why, size,
			 "this kernel does not accept the monitor's eBPF program (%s); FLEXGUARD_VERBOSE=2 "
			 "shows its reasons",
			 strerror(-err));
		return -ENOTSUP;
	}
}
