/* SPDX-License-Identifier: MIT */
/*
 * For filter_early: a library whose constructor, before the preload library's, installs a filter
 * that kills for what nobody but the preload library would call from then on: a look in /proc or
 * /sys, a socket, another filter.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int early_filter_error = -1;

#define KILLS(call)                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

__attribute__((constructor(101))) static void install(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    KILLS(SYS_openat),
	    KILLS(SYS_socket),
	    KILLS(SYS_prctl),
	    KILLS(SYS_membarrier),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof code / sizeof code[0], code};

	early_filter_error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
