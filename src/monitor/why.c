// SPDX-License-Identifier: MIT
/*
 * Why an eBPF program of ours did not load.  The kernel says EPERM for five different
 * things and EINVAL for the rest, so look at the causes one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "monitor/internal.h"
#include "monitor/namespace.h"
#include "monitor/needs.h"

/* Docker's filter answers bpf() with EPERM, podman's and others' with ENOSYS. */
static bool is_filtered(void)
{
	return fg_thread_status("Seccomp", 10, 0) != 0;
}

int fg_monitor_preflight(char *why, size_t size)
{
	return fg_needs(why, size);
}

/* Of address space: with 20 MB they cannot be loaded.  Not varied. */
#define TYPES_NEED (128u << 20)

int fg_why_load(int err, const char *outside, char *why, size_t size)
{
	struct rlimit space;

	switch (err) {
	case -EPERM:
		if (is_filtered())
			snprintf(
			    why, size,
			    "a seccomp filter forbids the bpf() system call here, or a security "
			    "module does: %s",
			    outside);
		else if (fg_in_first_user_namespace())
			snprintf(why, size,
				 "the kernel refused the eBPF program in spite of CAP_BPF and "
				 "CAP_PERFMON (a security module?)");
		else
			snprintf(why, size, FG_WHY_USER_NAMESPACE "; %s", outside);
		return -EPERM;
	case -ENOMEM:
		snprintf(why, size, "not enough kernel memory for the eBPF maps");
		return -ENOMEM;
	case -EMFILE:
	case -ENFILE:
		snprintf(why, size,
			 "no free file descriptors for the eBPF maps: raise `ulimit -n`");
		return err;
	case -ENOSYS: /* a kernel with the call has its switch in /proc */
		if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
			snprintf(why, size,
				 "the kernel was built without the bpf() system call "
				 "(CONFIG_BPF_SYSCALL)");
		else
			snprintf(why, size,
				 "a seccomp filter answers for the bpf() system call here: %s, or "
				 "allow bpf()",
				 outside);
		return -ENOTSUP;
	default:
		/* What libbpf says, also when it has not got the kernel's types. */
		if (err == -ESRCH && !getrlimit(RLIMIT_AS, &space) && space.rlim_cur < TYPES_NEED) {
			snprintf(why, size,
				 "too little address space for the kernel's types: raise `ulimit "
				 "-v`");
			return -ENOMEM;
		}
		snprintf(why, size,
			 "this kernel does not accept the eBPF program (%s); FLEXGUARD_VERBOSE=2 "
			 "shows its reasons",
			 strerror(-err));
		return -ENOTSUP;
	}
}
