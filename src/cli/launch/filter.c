/* SPDX-License-Identifier: MIT */
/*
 * Whether the filters that this process was started with, a container's say, let the
 * library's calls pass (sys/filter.h).  The library cannot try: they may kill.  So `flexguard
 * run` lets a child try, and tells the program how many filters there were: filters
 * are inherited and never go, so a process below with as many has the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/options.h"
#include "cli/common/message.h"
#include "cli/launch/filter.h"
#include "monitor/needs.h"
#include "sys/descriptor.h"
#include "sys/filter.h"
#include "sys/slice.h"

/* A filter may also leave a call without an answer; looks every TRY_LOOK_NS.  Not varied. */
#define TRY_NS	    1000000000u
#define TRY_LOOK_NS 1000000u

int fg_filters_here(void)
{
	if (!fg_thread_status("Seccomp", 10, 0))
		return 0;
	return (int)fg_thread_status("Seccomp_filters", 10, ~0ull);
}

/* What an answer says does not matter; that there is one does. */
static _Noreturn void try_calls(void)
{
	struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "\0flexguard-nobody"};
	struct timeval patience = {.tv_usec = 1};
	clockid_t own_cpu = (clockid_t)((~(unsigned)syscall(SYS_gettid) << 3) | 6u);
	struct timespec now, past = {0};
	cpu_set_t cpus;
	struct sched_param param;
	struct ucred who;
	socklen_t size = sizeof(who);
	struct statfs fs;
	struct stat st;
	char byte = 0;
	unsigned word = 0;
	void *memory, *tid;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	connect(fd, (struct sockaddr *)&nobody, sizeof(nobody));
	sendto(fd, &byte, 1, MSG_NOSIGNAL, NULL, 0);
	recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
	geteuid();
	close(fcntl(fd, F_DUPFD_CLOEXEC, FG_DESCRIPTOR_HIGH));
	fcntl(fd, F_GET_SEALS);
	fstat(fd, &st);
	fstatfs(fd, &fs);
	close(fd);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise(memory, 4096, MADV_WIPEONFORK);
	madvise(memory, 4096, MADV_POPULATE_WRITE);
	memory = mremap(memory, 4096, 4096, MREMAP_MAYMOVE);
	munmap(memory, 4096);
	sigprocmask(SIG_BLOCK, NULL, NULL);
	sched_yield();
	sched_getaffinity(0, sizeof(cpus), &cpus);
	sched_getaffinity(getpid(), sizeof(cpus), &cpus); /* and of other threads */
	sched_getscheduler(0);
	sched_getparam(0, &param);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	syscall(SYS_clock_gettime, own_cpu, &now);
	syscall(SYS_futex, &word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 1);
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &past, NULL, 1);
	prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0);
	close(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	_exit(0);
}

/* What waits of other libraries ask before they look (lock/futex_look.c). */
static _Noreturn void try_looks(void)
{
	unsigned word = 0;

	syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 0, NULL, &word, 0);
	_exit(0);
}

/* What owners ask for (runtime/slice.h). */
static _Noreturn void try_slices(void)
{
	prctl(FG_PR_RSEQ_SLICE, FG_RSEQ_SLICE_GET, 0, 0, 0);
	syscall(FG_SYS_SLICE_YIELD);
	_exit(0);
}

static bool survives(void (*calls)(void))
{
	static const struct timespec tick = {.tv_nsec = TRY_LOOK_NS};
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		calls();
	if (pid < 0)
		return false;
	for (unsigned n = 0; waitpid(pid, &status, WNOHANG) == 0; n++) {
		if (n == TRY_NS / TRY_LOOK_NS)
			kill(pid, SIGKILL);
		nanosleep(&tick, NULL);
	}
	return status == 0;
}

bool fg_filters_pass(void)
{
	return survives(try_calls);
}

bool fg_filters_pass_looks(void)
{
	return !fg_filters_here() || survives(try_looks);
}

bool fg_filters_tell(void)
{
	const char *known = getenv(FG_FILTERS_ENV);
	int filters = fg_filters_here();
	char count[16];

	if (!filters || (known && !strcmp(known, "allow")))
		return true;
	snprintf(count, sizeof(count), "%d", filters);
	if (filters > 0 && fg_filters_pass())
		return (survives(try_slices) || !setenv(FG_SLICE_ENV, "off", 1)) &&
		       !setenv(FG_FILTERS_ENV, count, 1);
	unsetenv(FG_FILTERS_ENV);
	fg_note(
	    "a seccomp filter does not let the library's calls pass: the program runs without the "
	    "monitor, on futex calls only");
	return false;
}
