// SPDX-License-Identifier: MIT
/*
 * Kernel memory of a user that keeps every array that it can get: by many hellos, by children that
 * say hello, send the descriptor away and end, by children that inherit a mapping, by programs that
 * exec and say hello again.  It stays within the quota, counted until the kernel has freed it, and
 * then the user gets arrays again.  Another user does not notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "harness.h"

#define QUOTA (512u << 10) /* seven arrays of 64 KB and what goes with each */

static struct monitor m;

/* One hello: the descriptor of the array, or -errno. */
static int hello(int64_t offset)
{
	struct fg_hello h = {
	    .magic = FG_PROTO_MAGIC,
	    .abi = FG_ABI_VERSION,
	    .want_slots = FG_PIECE,
	    .tls_offset = offset,
	};
	int sock = client_connect(m.name), fds[2];
	struct fg_welcome w;

	CHECK(sock >= 0 && !client_exchange(sock, &h, sizeof(h), &w, fds));
	close(sock);
	if (w.error) {
		CHECK(w.error == -EDQUOT || w.error == -EAGAIN);
		return w.error;
	}
	close(fds[1]);
	return fds[0];
}

/* What the arrays behind these descriptors take, each counted once. */
static unsigned long memory(const int *fds, int n)
{
	unsigned long ids[1024], id, lock, sum = 0;
	char path[64], line[256];
	int i, k, known = 0;

	for (i = 0; i < n; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fds[i]);
		f = fopen(path, "r");
		CHECK(f);
		id = lock = 0;
		while (fgets(line, sizeof(line), f)) {
			sscanf(line, "memlock: %lu", &lock);
			sscanf(line, "map_id: %lu", &id);
		}
		fclose(f);
		CHECK(id && lock);
		for (k = 0; k < known && ids[k] != id; k++)
			;
		if (k < known)
			continue;
		ids[known++] = id;
		sum += lock;
	}
	return sum;
}

static void check_memory(const char *how, const int *fds, int n)
{
	unsigned long have = memory(fds, n);

	if (have > QUOTA)
		fail("%s: %lu bytes are kept, the quota is %u", how, have, QUOTA);
	if (!have)
		fail("%s: nothing was to be had", how);
}

static void let_go(int *fds, int n)
{
	while (n)
		close(fds[--n]);
}

static void become_user(void)
{
	if (geteuid() == 0)
		CHECK(!setresuid(1001, 1001, 1001));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
}

/* One process, many hellos, also as if it had several copies of the library. */
static void by_hellos(void *arg)
{
	int fds[200], n = 0, fd;

	(void)arg;
	become_user();
	for (int i = 0; i < 200; i++) {
		fd = hello(i % 2 ? tls_offset() : -8 * i);
		if (fd >= 0)
			fds[n++] = fd;
	}
	check_memory("hellos", fds, n);
}

/* Children say hello, send what they got and end. */
static void by_children(void *arg)
{
	int fds[200], n = 0, pair[2];

	(void)arg;
	become_user();
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	for (int i = 0; i < 100; i++) {
		char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
		struct iovec iov = {&byte, 1};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = sizeof(control)};
		struct cmsghdr *c;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			int fd = hello(tls_offset());

			if (fd >= 0) {
				c = CMSG_FIRSTHDR(&msg);
				c->cmsg_level = SOL_SOCKET;
				c->cmsg_type = SCM_RIGHTS;
				c->cmsg_len = CMSG_LEN(sizeof(int));
				memcpy(CMSG_DATA(c), &fd, sizeof(int));
			} else {
				msg.msg_controllen = 0;
			}
			_exit(sendmsg(pair[1], &msg, 0) != 1);
		}
		CHECK(recvmsg(pair[0], &msg, 0) == 1);
		c = CMSG_FIRSTHDR(&msg);
		if (c)
			memcpy(&fds[n++], CMSG_DATA(c), sizeof(int));
		reap(pid);
	}
	check_memory("children", fds, n);
	/*
	 * All of it is free again when the last descriptor is closed: then as many are to be had as
	 * before.
	 */
	let_go(fds, n);
	WAIT_FOR((fds[0] = hello(tls_offset())) >= 0);
}

/* The mapping of a process that has ended lives on in its child. */
static void by_mappings(void *arg)
{
	int pipes[2], kept = 0;
	char byte;

	(void)arg;
	become_user();
	CHECK(!pipe2(pipes, O_CLOEXEC));
	for (int i = 0; i < 40; i++) {
		int answer[2];
		pid_t pid;

		CHECK(!pipe2(answer, O_CLOEXEC));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			int fd = hello(tls_offset());
			void *map = fd < 0 ? MAP_FAILED :
					     mmap(NULL, FG_PIECE * sizeof(struct fg_slot),
						  PROT_READ, MAP_SHARED, fd, 0);

			close(fd);
			byte = map != MAP_FAILED;
			CHECK(write(answer[1], &byte, 1) == 1);
			if (byte && fork() == 0) {
				close(pipes[1]);
				_exit(read(pipes[0], &byte, 1) != 0); /* until the parent lets go */
			}
			_exit(0);
		}
		CHECK(read(answer[0], &byte, 1) == 1);
		kept += byte;
		reap(pid);
		close(answer[0]);
		close(answer[1]);
	}
	if (!kept || kept * FG_PIECE * sizeof(struct fg_slot) > QUOTA)
		fail("mappings: %d are kept", kept);
	close(pipes[1]);
	WAIT_FOR((kept = hello(tls_offset())) >= 0);
}

/* The same process, again and again another program. */
static void by_exec(const char *self, const char *name, const char *left)
{
	int fds[1024], n = 0, fd = -1;
	char next[16];

	become_user();
	memcpy(m.name, name, strlen(name) + 1);
	for (int i = 0; i < 100 && fd < 0; i++) /* -EAGAIN, beside other work */
		if ((fd = hello(tls_offset())) != -EAGAIN)
			break;
		else
			usleep(10000);
	if (fd >= 0)
		CHECK(!fcntl(fd, F_SETFD, 0));
	snprintf(next, sizeof(next), "%d", atoi(left) - 1);
	if (atoi(left)) {
		execl(self, self, name, next, NULL);
		fail("execl: %s", strerror(errno));
	}
	for (fd = 3; fd < 1024; fd++) {
		char path[32], target[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "bpf-map"))
			fds[n++] = fd;
	}
	check_memory("exec", fds, n);
	_exit(0);
}

static char *self;

static void start_exec(void *arg)
{
	(void)arg;
	execl(self, self, m.name, "60", NULL);
	fail("execl: %s", strerror(errno));
}

static void another_user(void *arg)
{
	(void)arg;
	CHECK(!setresuid(1002, 1002, 1002));
	CHECK(hello(tls_offset()) >= 0);
}

int main(int argc, char **argv)
{
	struct fg_monitor_config cfg = {.max_memory_per_uid = QUOTA};
	void (*const attacks[])(void *) = {by_hellos, by_children, by_mappings, start_exec};

	if (argc == 3)
		by_exec(argv[0], argv[1], argv[2]);
	test_begin();
	if (geteuid())
		skip("only root can be several users");
	self = realpath("/proc/self/exe", NULL);
	monitor_start(&m, &cfg);
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		reap(spawn(attacks[i], NULL));
		reap(spawn(another_user, NULL));
	}
	monitor_stop(&m);
	return 0;
}
