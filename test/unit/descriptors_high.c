/* SPDX-License-Identifier: MIT */
/*
 * A descriptor of the library's own has the lowest number for two system calls: all that it does
 * with one, it does with a high number, or with one that is not low where RLIMIT_NOFILE allows no
 * high one.  Seen from outside, call by call, in a program that has none of its own.
 */
#include "../tools/check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

struct rule {
	unsigned long long lowest,
	    few; /* for descriptors, and RLIMIT_NOFILE for that; 0: as it is */
};

static void be_seen(const char *self, const struct rule *r)
{
	struct rlimit few = {r->few, r->few};

	CHECK_EQ(syscall(SYS_close_range, 3u, ~0u, 0u), 0);
	if (r->few)
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(CHECK_SKIP);
	raise(SIGSTOP);
	execl("/proc/self/exe", self, "child", (char *)NULL);
	_exit(1);
}

/* Which descriptor the call is about, if any: the dynamic linker maps files, and none is shared. */
static int is_about(const struct __ptrace_syscall_info *call, unsigned long long *fd)
{
	const uint64_t *arg = call->entry.args;

	switch (call->entry.nr) {
	case SYS_connect:
	case SYS_sendto:
	case SYS_recvmsg:
	case SYS_getsockopt:
	case SYS_setsockopt: *fd = arg[0]; return 1;
	case SYS_fcntl: *fd = arg[0]; return arg[1] == F_GET_SEALS;
	case SYS_mmap: *fd = arg[4]; return (int)arg[4] >= 0 && arg[3] & MAP_SHARED;
	}
	return 0;
}

/* How many such calls there were. */
static int look(pid_t pid, const struct rule *r)
{
	struct __ptrace_syscall_info call;
	unsigned long long fd;
	int status, calls = 0;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIP)
		check_skip("nobody may be traced here");
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
		 0);
	for (;;) {
		CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call) < 0)
			check_skip("this kernel does not tell of system calls (Linux 5.3)");
		if (call.op != PTRACE_SYSCALL_INFO_ENTRY || !is_about(&call, &fd))
			continue;
		calls++;
		if (fd < r->lowest)
			check_say("call %d, of descriptor %d", (int)call.entry.nr, (int)fd);
		CHECK(fd >= r->lowest);
	}
	CHECK_EQ(status, 0);
	return calls;
}

int main(int argc, char **argv)
{
	static const struct rule rules[] = {{sizeof(long) * 6, 0}, {24, 40}, {12, 16}};

	if (argc > 1)
		return 0;
	check_begin(argv[0], 20);
	for (int i = 0; i < 3; i++) {
		pid_t pid = check_fork();
		int calls;

		if (!pid)
			be_seen(argv[0], &rules[i]);
		calls = look(pid, &rules[i]);
		check_say("%d calls about descriptors", calls);
		/* Who asks for a monitor connects at least. */
		CHECK(calls || !getenv("CHECK_PRELOAD") || check_has_policy());
	}
	return 0;
}
