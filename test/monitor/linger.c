// SPDX-License-Identifier: MIT
/*
 * Clients that send a descriptor along whose close(2) waits, for longer than the test may take: in
 * a hello, behind one, in a packet that nobody reads, to the socket that is the lock, and whose
 * last reference goes with the packet.  Others are served all the same, and the monitor ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "harness.h"

/* A connection whose close waits for a peer that does not read. */
static int lingering(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	struct linger linger = {.l_onoff = 1, .l_linger = 10 * DEADLINE_S};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char data[65536];

	CHECK(listener >= 0 && fd >= 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(fd, (struct sockaddr *)&address, size))
		skip("no TCP on the loopback device here: %s", strerror(errno));
	CHECK(accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0); /* stays open, and unread */
	close(listener);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) >= 0)
		;
	CHECK(errno == EAGAIN);
	return fd;
}

static void send_two(int sock, const void *packet, size_t size)
{
	int fds[2] = {lingering(), lingering()};
	char control[CMSG_SPACE(sizeof(fds))] = {0};
	struct iovec iov = {(void *)packet, size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	CHECK(sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)size);
	close(fds[0]);
	close(fds[1]);
}

static int connect_lock(int lock)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !getsockname(lock, (struct sockaddr *)&address, &size));
	CHECK(!connect(fd, (struct sockaddr *)&address, size));
	return fd;
}

/* Before the monitor serves, as they may come to systemd's socket: later, Linux 6.16 refuses. */
static void prepare(const char *name, int lock)
{
	struct fg_hello hello = {.magic = FG_PROTO_MAGIC, .abi = FG_ABI_VERSION};
	int behind = client_connect(name);

	send_two(client_connect(name), &hello, sizeof(hello));
	CHECK(send(behind, &hello, sizeof(hello), 0) == sizeof(hello));
	send_two(behind, &hello, sizeof(hello));
	send_two(connect_lock(lock), "", 1);
}

struct start {
	char name[64], folder[32];
	int stop[2]; /* the monitor stops when the second one is closed */
};

static void serve(void *arg)
{
	struct start *s = arg;
	struct fg_monitor *m = monitor_open_or_skip(NULL);
	int listener = fg_monitor_listen(s->name, 0666), lock = fg_monitor_lock(s->folder);

	CHECK(listener >= 0 && lock >= 0);
	close(s->stop[1]);
	prepare(s->name, lock);
	CHECK(!fg_monitor_serve(m, listener, lock, s->stop[0]));
	fg_monitor_close(m);
}

int main(void)
{
	struct start s = {.folder = "/tmp/flexguard-test-XXXXXX"};
	struct client c;
	int sock;
	pid_t pid;

	test_begin();
	snprintf(s.name, sizeof(s.name), "@flexguard-test-%d-linger", getpid());
	CHECK(mkdtemp(s.folder));
	strcat(s.folder, "/s");
	CHECK(!pipe2(s.stop, O_CLOEXEC));
	pid = spawn(serve, &s);
	*strrchr(s.folder, '/') = '\0';
	for (int ended = 0; (sock = client_connect(s.name)) < 0; usleep(1000)) {
		CHECK(sock == -ECONNREFUSED);
		if (waitpid(pid, &ended, WNOHANG) == pid)
			_exit(WEXITSTATUS(ended));
	}
	close(sock);
	client_join(&c, s.name, 8);
	close(s.stop[1]);
	reap(pid);
	rmdir(s.folder);
	return 0;
}
