/* SPDX-License-Identifier: MIT */
/*
 * pretend WHAT program args...: runs a program on a kernel that answers one system call otherwise,
 * by a seccomp filter.
 *
 *   extends-slices     says yes to prctl(PR_RSEQ_SLICE_EXTENSION) and does nothing about it: the
 *                      locks with time-slice extension can be tested where no kernel has it; they
 *                      do all they do, nobody grants anything
 *   refuses-programs   accepts no eBPF program
 *   lacks-bpf          a filter answers for the whole of bpf(2) that there is no such call, as some
 *                      containers' do
 *   lacks-close-range  as a kernel before 5.9
 *   kills-sockets      a filter kills for a socket
 *   kills-getsockopt   a filter kills for getsockopt, which tells who listens
 *   kills-slices       a filter kills for prctl(PR_RSEQ_SLICE_EXTENSION)
 *   kills-requeue      a filter kills for one of futex's operations, FUTEX_CMP_REQUEUE
 *
 * Exit status 77: no seccomp filters here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BPF_PROG_LOAD_COMMAND 5
#define PR_RSEQ_SLICE	      79

static const struct pretence {
	const char *name;
	unsigned call, argument;
	bool any; /* argument */
	unsigned answer;
	unsigned which; /* argument, from 0 */
} pretences[] = {
    {"extends-slices", SYS_prctl, PR_RSEQ_SLICE, false, SECCOMP_RET_ERRNO, 0},
    {"refuses-programs", SYS_bpf, BPF_PROG_LOAD_COMMAND, false, SECCOMP_RET_ERRNO | EINVAL, 0},
    {"lacks-bpf", SYS_bpf, 0, true, SECCOMP_RET_ERRNO | ENOSYS, 0},
    {"lacks-close-range", SYS_close_range, 0, true, SECCOMP_RET_ERRNO | ENOSYS, 0},
    {"kills-sockets", SYS_socket, 0, true, SECCOMP_RET_KILL_PROCESS, 0},
    {"kills-getsockopt", SYS_getsockopt, 0, true, SECCOMP_RET_KILL_PROCESS, 0},
    {"kills-slices", SYS_prctl, PR_RSEQ_SLICE, false, SECCOMP_RET_KILL_PROCESS, 0},
    {"kills-requeue", SYS_futex, FUTEX_CMP_REQUEUE_PRIVATE, false, SECCOMP_RET_KILL_PROCESS, 1},
};

int main(int argc, char **argv)
{
	const struct pretence *p = NULL;

	for (size_t i = 0; argc > 2 && i < sizeof(pretences) / sizeof(pretences[0]); i++)
		if (!strcmp(argv[1], pretences[i].name))
			p = &pretences[i];
	if (!p) {
		fputs("usage: pretend ", stderr);
		for (size_t i = 0; i < sizeof(pretences) / sizeof(pretences[0]); i++)
			fprintf(stderr, "%s%s", i ? "|" : "", pretences[i].name);
		fputs(" program args...\n", stderr);
		return 2;
	}

	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->call, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * p->which +
						   4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->argument, 0, p->any ? 0 : 1),
	    BPF_STMT(BPF_RET | BPF_K, p->answer),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		puts("skipped: no seccomp filters here");
		return 77;
	}
	execvp(argv[2], &argv[2]);
	perror(argv[2]);
	return 127;
}
