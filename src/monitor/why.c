// SPDX-License-Identifier: MIT
/*
 * Why the monitor cannot run here.  The kernel says EPERM for five different
 * things and EINVAL for the rest, so look at the causes one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "monitor/internal.h"

#define CAP_BIT_SYS_ADMIN (1ull << 21)
#define CAP_BIT_PERFMON	  (1ull << 38)
#define CAP_BIT_BPF	  (1ull << 39)

static unsigned long long effective_caps(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *f = fopen("/proc/thread-self/status", "re");

	if (!f)
		return ~0ull;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(f);
	return caps;
}

static bool older_than(int major, int minor)
{
	struct utsname u;
	int a, b;

	if (uname(&u) || sscanf(u.release, "%d.%d", &a, &b) != 2)
		return false;
	return a < major || (a == major && b < minor);
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

int fg_why_preflight(char *why, size_t size)
{
	unsigned long long caps = effective_caps();
	struct utsname u;

	uname(&u);
	if (older_than(5, 14)) {
		snprintf(why, size, "Linux %s is too old for the monitor: it needs 5.14 or later", u.release);
		return -ENOTSUP;
	}
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
	struct rlimit lock = {RLIM_INFINITY, RLIM_INFINITY};

	switch (err) {
	case -EPERM:
	case -EACCES:
		getrlimit(RLIMIT_MEMLOCK, &lock);
		if (locked_down())
			snprintf(why, size,
				 "kernel lockdown (confidentiality mode) forbids eBPF programs that read "
				 "kernel memory");
		else if (lock.rlim_cur != RLIM_INFINITY && older_than(5, 11))
			snprintf(why, size,
				 "the locked-memory limit is too low: raise it with `ulimit -l unlimited`");
		else
			snprintf(why, size,
				 "the kernel refused the eBPF program in spite of CAP_BPF and CAP_PERFMON (a "
				 "container's seccomp filter, or a security module?)");
		return -EPERM;
	case -ENOMEM:
		snprintf(why, size, "not enough kernel memory for the monitor's eBPF maps");
		return -ENOMEM;
	case -EMFILE:
	case -ENFILE:
		snprintf(why, size,
			 "no free file descriptors for the monitor's eBPF maps: raise `ulimit -n`");
		return err;
	case -ENOSYS:
		snprintf(why, size,
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
