/* SPDX-License-Identifier: MIT */
/*
 * The memory of the process that `flexguard stat` looks at: who may debug it may do this.  By one
 * descriptor, which stays that memory's: after an exec, of a setuid program say, or when the number
 * is another process's, there is nothing behind it, and nobody else's memory is written.
 *
 * What is mapped there may be a file of a file system that the program itself serves (FUSE), and
 * the kernel waits for that, where not even SIGKILL ends it.  So a child reads and writes, and has
 * nothing that anybody else waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/commands/stat.h"
#include "cli/common/descriptors.h"
#include "cli/common/query.h"
#include "monitor/clock.h"

/* For a transfer; memory that was swapped out, or is on a server, takes some time.  Not varied. */
#define TRANSFER_NS 10000000000ull

/* What the child is asked for, and hears, beside a byte each way. */
struct fg_stat_order {
	uint64_t there;
	size_t size;
	bool out;
	int result;
	unsigned char data[sizeof(struct fg_trace)];
};

static int transfer(int memory, struct fg_stat_order *o)
{
	ssize_t n = o->out ? pwrite(memory, o->data, o->size, (off_t)o->there) :
			     pread(memory, o->data, o->size, (off_t)o->there);

	if (n < 0)
		return errno == EIO ? -EFAULT : -errno;
	if (!n && o->size)
		return -ESRCH;
	return (size_t)n == o->size ? 0 : -EFAULT;
}

/* The child's descriptors, besides those of /dev/null. */
#define MEMORY 3
#define SOCKET 4

/* Until the command has ended. */
static _Noreturn void serve(int memory, int socket, struct fg_stat_order *o)
{
	char byte;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_IGN);
	memory = fcntl(memory, F_DUPFD, SOCKET + 1);
	socket = fcntl(socket, F_DUPFD, SOCKET + 1);
	dup2(memory, MEMORY);
	dup2(socket, SOCKET);
	close_range(SOCKET + 1, ~0u, 0);
	for (int fd = 0; fd < 3; fd++)
		fg_fd_null(fd);
	while (read(SOCKET, &byte, 1) == 1) {
		o->result = transfer(MEMORY, o);
		if (send(SOCKET, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}

static int start(struct fg_stat_target *t, int memory)
{
	int pair[2];
	pid_t pid;

	t->order = mmap(NULL, sizeof(*t->order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (t->order == MAP_FAILED)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid) {
		close(pair[0]);
		serve(memory, pair[1], t->order);
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	return pid < 0 ? -errno : pair[0];
}

void fg_stat_open(struct fg_stat_target *t)
{
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	t->socket = memory < 0 ? -errno : start(t, memory);
	if (memory >= 0)
		close(memory);
	t->ahead_ns = fg_clock_ahead_ns(t->pid);
}

void fg_stat_close(struct fg_stat_target *t)
{
	if (t->socket >= 0)
		close(t->socket);
}

/* Ctrl-C does not end it: there are transfers after that. */
static bool has_answered(int socket)
{
	uint64_t end = fg_now_ns() + TRANSFER_NS, now;
	struct pollfd p = {.fd = socket, .events = POLLIN};
	int n = -1;

	while (n < 0 && (now = fg_now_ns()) < end)
		n = poll(&p, 1, (int)((end - now) / 1000000) + 1);
	return n > 0;
}

int fg_stat_transfer(struct fg_stat_target *t, uint64_t there, void *here, size_t size, bool out)
{
	struct fg_stat_order *o = t->order;
	char byte = 0;

	if (t->socket < 0)
		return t->socket;
	o->there = there;
	o->size = size;
	o->out = out;
	if (out)
		memcpy(o->data, here, size);
	if (send(t->socket, &byte, 1, MSG_NOSIGNAL) != 1 || !has_answered(t->socket) ||
	    read(t->socket, &byte, 1) != 1) {
		close(t->socket);
		return t->socket = -ETIMEDOUT;
	}
	if (!out && !o->result)
		memcpy(here, o->data, size);
	return o->result;
}
