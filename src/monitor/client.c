// SPDX-License-Identifier: MIT
/*
 * Clients, from accept to welcome.  One packet each way, then the connection
 * is closed; a client that says nothing is dropped after a second, and a crowd
 * of silent ones pushes out its own oldest, never the next honest one nor
 * another user's.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "monitor/internal.h"
#include "monitor.skel.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

void fg_client_drop(struct fg_monitor *m, uint32_t index)
{
	struct fg_client *c = &m->clients[index];

	if (c->fd < 0)
		return;
	close(c->fd); /* epoll forgets it: nobody else has this descriptor */
	c->fd = -1;
	m->nr_clients--;
}

/* The oldest connection, of this user if there is one. */
static uint32_t oldest(const struct fg_monitor *m, const uid_t *uid)
{
	uint32_t i, best = FG_MAX_CLIENTS;

	for (i = 0; i < FG_MAX_CLIENTS; i++)
		if (m->clients[i].fd >= 0 && (!uid || m->clients[i].uid == *uid) &&
		    (best == FG_MAX_CLIENTS || m->clients[i].deadline_ns < m->clients[best].deadline_ns))
			best = i;
	return best;
}

/* Perhaps it has said hello, and it is only we who are slow: then it is served. */
static void push_out(struct fg_monitor *m, uint32_t index)
{
	fg_client_ready(m, index);
	fg_client_drop(m, index);
}

static uint32_t connections(const struct fg_monitor *m, uid_t uid)
{
	uint32_t i, n = 0;

	for (i = 0; i < FG_MAX_CLIENTS; i++)
		n += m->clients[i].fd >= 0 && m->clients[i].uid == uid;
	return n;
}

void fg_client_expire(struct fg_monitor *m, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < FG_MAX_CLIENTS && m->nr_clients; i++)
		if (m->clients[i].fd >= 0 && m->clients[i].deadline_ns <= now_ns) {
			m->dropped++;
			fg_client_drop(m, i);
		}
}

void fg_pass_credentials(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

void fg_client_accept(struct fg_monitor *m, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	uint32_t i;
	uid_t uid;

	if (fd < 0) {
		/* Out of descriptors: the listening socket stays ready, so give one back or wait a little. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			if (m->nr_clients)
				fg_client_drop(m, oldest(m, NULL));
			else
				poll(NULL, 0, 10);
		}
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	uid = fg_monitor_account(m, fd, cred.uid);
	if (connections(m, uid) >= m->cfg.max_connections_per_uid)
		push_out(m, oldest(m, &uid));
	if (m->nr_clients == FG_MAX_CLIENTS)
		push_out(m, oldest(m, NULL));
	for (i = 0; m->clients[i].fd >= 0; i++)
		;
	/* Already so as a rule, from the listening socket: not those that came before it was (systemd's). */
	fg_pass_credentials(fd);
	m->clients[i].fd = fd;
	m->clients[i].uid = uid;
	m->clients[i].euid = cred.uid;
	m->clients[i].deadline_ns = fg_now_ns() + FG_HELLO_NS;
	m->nr_clients++;
	if (fg_watch(m, fd, FG_EV_CLIENT, i))
		fg_client_drop(m, i);
}

/*
 * The peer as the kernel remembers it from connect().  SO_PEERPIDFD (6.5) works
 * across pid namespaces and cannot mean a later process with the same pid.  Its hello has to be its own:
 * nobody binds the threads of another.
 */
static int peer(int fd, pid_t sender, struct fg_peer *p)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	/* 0: in no pid namespace that can be seen from here. */
	if (cred.pid <= 0 || sender != cred.pid)
		return -EACCES;
	p->pid = cred.pid;
	len = sizeof(p->pidfd);
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &p->pidfd, &len))
		return 0;
	if (errno != ENOPROTOOPT)
		return -errno;
	p->pidfd = syscall(SYS_pidfd_open, cred.pid, 0);
	return p->pidfd < 0 ? -errno : 0;
}

static void answer(int fd, const struct fg_welcome *w, const int *fds, size_t nr_fds)
{
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec iov = {(void *)w, sizeof(*w)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (nr_fds) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, nr_fds * sizeof(int));
	}
	/* A client that cannot take its answer has left: nothing to do about it. */
	sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int check(const struct fg_hello *hello, ssize_t size)
{
	if (size < (ssize_t)(2 * sizeof(uint32_t)) || hello->magic != FG_PROTO_MAGIC)
		return -EPROTO;
	if (hello->abi != FG_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (size != sizeof(*hello))
		return -EPROTO;
	return hello->from % FG_PIECE ? -EINVAL : 0;
}

static void welcome(struct fg_monitor *m, const struct fg_client *c, const struct fg_hello *hello, ssize_t size,
		    pid_t sender)
{
	struct fg_welcome w = {.magic = FG_PROTO_MAGIC, .abi = FG_ABI_VERSION};
	int fds[2] = {-1, bpf_map__fd(m->skel->maps.counters)};
	struct fg_peer p = {.sock = c->fd, .uid = c->uid};
	int err = check(hello, size);

	if (!err)
		err = peer(c->fd, sender, &p);
	if (!err) {
		err = fg_process_register(m, &p, hello, &w, &fds[0]);
		close(p.pidfd);
	}
	if (err)
		m->refused++;
	else
		m->registered++;
	w.error = err;
	w.nr_cpus = libbpf_num_possible_cpus();
	answer(c->fd, &w, fds, err ? 0 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
}

/*
 * What the kernel says of the sender (SO_PASSCRED).  Only root of the sender's pid namespace can make it say
 * another process of that namespace, and whom it says has to be who connected.
 */
static ssize_t receive(int fd, void *packet, size_t size, pid_t *sender)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {packet, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	/* Descriptors that somebody sends along find no room, and are closed by the kernel. */
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;
	struct ucred cred;

	*sender = 0;
	for (c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(cred))) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			*sender = cred.pid;
		}
	return n;
}

/* Who may ask about everybody (report.c); anybody else asks about those that he pays for. */
static bool is_privileged(uid_t euid)
{
	return euid == 0 || euid == geteuid();
}

/* A packet, or the end of the connection: `flexguard run` only looks whether somebody listens. */
void fg_client_ready(struct fg_monitor *m, uint32_t index)
{
	union {
		uint32_t magic;
		struct fg_hello hello;
		struct fg_query query;
	} packet = {0};
	struct fg_client *c = &m->clients[index];
	pid_t sender;
	ssize_t n;

	if (c->fd < 0)
		return;
	n = receive(c->fd, &packet, sizeof(packet), &sender);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && packet.magic == FG_QUERY_MAGIC)
		fg_report_answer(m, c->fd, &packet.query, n, is_privileged(c->euid) ? c->euid : c->uid);
	else if (n > 0)
		welcome(m, c, &packet.hello, n, sender);
	fg_client_drop(m, index);
}
