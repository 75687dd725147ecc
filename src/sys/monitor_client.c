/* SPDX-License-Identifier: MIT */
/*
 * Registration with the monitor: one hello, one welcome, two mappings.  Raw
 * system calls, because it may run inside pthread_mutex_lock (first contended
 * lock of a forked child), which is no cancellation point and keeps errno.
 */
#include "sys/monitor_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "arch/arch.h"
#include "lock/decide.h"
#include "lock/thread.h"
#include "sys/count.h"

bool fg_monitor_register_later;

/* Threads that we would like the monitor to see; those beyond are taken to be always on CPU. */
#define WANT_SLOTS 1024u

#define ANSWER_WITHIN_US 250000

static long sys(long nr, long a, long b, long c, long d, long e, long f)
{
	return fg_syscall6(nr, a, b, c, d, e, f);
}

static void close_fd(int fd)
{
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

static socklen_t socket_address(struct sockaddr_un *addr)
{
	const char *path = getenv(FG_SOCKET_ENV);
	size_t length;

	if (!path || !*path)
		path = FG_SOCKET_PATH;
	length = strlen(path);
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (length >= sizeof(addr->sun_path))
		return 0;
	memcpy(addr->sun_path, path, length);
	if (path[0] == '@')
		addr->sun_path[0] = 0;
	else
		length++;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static int connect_monitor(void)
{
	struct timeval patience = { .tv_usec = ANSWER_WITHIN_US };
	struct sockaddr_un addr;
	socklen_t size = socket_address(&addr);
	long fd;

	if (!size)
		return -1;
	fd = sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return -1;
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof(patience), 0);
	sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof(patience), 0);
	if (sys(SYS_connect, fd, (long)&addr, size, 0, 0, 0) < 0) {
		close_fd((int)fd);
		return -1;
	}
	return (int)fd;
}

static int64_t tls_offset(void)
{
	/* Both are at fixed places of the thread's static TLS: the same difference in every thread. */
	return (char *)&fg_self_tls.bind - ((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Receives the welcome; descriptors into fds[2], -1 where there is none. */
static bool receive(int sock, struct fg_welcome *welcome, int fds[2])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = { welcome, sizeof(*welcome) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	long n = sys(SYS_recvmsg, sock, (long)&msg, MSG_CMSG_CLOEXEC, 0, 0, 0);

	fds[0] = fds[1] = -1;
	if (n < 0)
		return false;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), (count < 2 ? count : 2) * sizeof(int));
	}
	return n == sizeof(*welcome) && welcome->magic == FG_PROTO_MAGIC && welcome->abi == FG_ABI_VERSION &&
	       welcome->error == 0 && fds[0] >= 0 && fds[1] >= 0;
}

/* A file that is shorter than promised would kill us when we look at it; a BPF map has no length. */
static bool long_enough(int fd, size_t size)
{
	struct stat st;

	if (sys(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0)
		return false;
	return !S_ISREG(st.st_mode) || (size_t)st.st_size >= size;
}

static bool adopt(const struct fg_welcome *welcome, int slots_fd, int counters_fd)
{
	uint32_t slots = welcome->slots < FG_MAX_THREADS ? welcome->slots : FG_MAX_THREADS;
	long counters;

	if (slots < 2 || !long_enough(slots_fd, slots * sizeof(struct fg_slot)) ||
	    !long_enough(counters_fd, sizeof(struct fg_counters)))
		return false;
	counters = sys(SYS_mmap, 0, sizeof(struct fg_counters), PROT_READ, MAP_SHARED, counters_fd, 0);
	if (counters < 0 && counters > -4096)
		return false;
	if (fg_slots_map(slots_fd, slots) < 0) {
		sys(SYS_munmap, counters, sizeof(struct fg_counters), 0, 0, 0, 0);
		return false;
	}
	fg_policy_monitor((const struct fg_counters *)counters, welcome->domain);
	return true;
}

void fg_monitor_register(void)
{
	struct fg_hello hello = { .magic = FG_PROTO_MAGIC, .abi = FG_ABI_VERSION, .want_slots = WANT_SLOTS };
	struct fg_welcome welcome;
	int sock, fds[2] = { -1, -1 };

	__atomic_store_n(&fg_monitor_register_later, false, __ATOMIC_RELAXED);
	if (__rseq_size == 0 || (fg_policy != FG_POLICY_DEFAULT && fg_policy != FG_POLICY_PAPER))
		return; /* the monitor could not find our threads; we would not listen to it */
	hello.tls_offset = tls_offset();
	sock = connect_monitor();
	if (sock < 0)
		return;
	if (sys(SYS_sendto, sock, (long)&hello, sizeof(hello), MSG_NOSIGNAL, 0, 0) == sizeof(hello) &&
	    receive(sock, &welcome, fds) && adopt(&welcome, fds[0], fds[1]))
		fg_count(fg_self(), FG_STAT_MONITORED, 1);
	if (fds[0] >= 0)
		close_fd(fds[0]);
	if (fds[1] >= 0)
		close_fd(fds[1]);
	close_fd(sock);
}

void fg_monitor_forget(void)
{
	fg_monitor_register_later = fg_policy_now != FG_POLICY_FALLBACK &&
				    (fg_policy == FG_POLICY_DEFAULT || fg_policy == FG_POLICY_PAPER);
	fg_policy_monitor(NULL, 0);
}
