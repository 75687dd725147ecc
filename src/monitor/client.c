// SPDX-License-Identifier: MIT
/*
 * Clients, from accept to welcome.  One packet each way, then the connection
 * is closed; a client that says nothing is dropped after a second, and many
 * silent ones push out their own oldest, never another user's.
 *
 * What to take in and whom to serve are two things.  All connections and packets are taken in as
 * they come, which is some microseconds each.  To serve one takes longer; that goes by a
 * fair queue of users (fair_queue.h), and only when the publisher has room, since to wait for it
 * would hold up everybody.  Where connections are more than there is room for, those of the user
 * with most go.
 *
 * A user that does not read answers gets no more of them (unread.c): its connections wait, until
 * their second is over.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "monitor/brief.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The connection is no client's any more. */
static int release(struct fg_monitor *m, struct fg_client *c)
{
	int fd = c->fd;

	if (c->walk >= 0)
		close(c->walk);
	c->fd = c->walk = -1;
	m->nr_clients--;
	m->nr_waiting -= c->said;
	c->said = c->stalled = false;
	c->waits = 0;
	return fd;
}

void fg_client_drop(struct fg_monitor *m, uint32_t index)
{
	if (m->clients[index].fd >= 0)
		/* epoll forgets it: nobody else has this descriptor */
		fg_brief_close(release(m, &m->clients[index]));
}

/* Connections of this user that have not said anything yet, and the oldest of them. */
static uint32_t silent(const struct fg_monitor *m, uid_t uid, uint32_t *oldest)
{
	uint32_t i, n = 0;

	for (i = 0; i < FG_MAX_CLIENTS; i++) {
		const struct fg_client *c = &m->clients[i];

		if (c->fd < 0 || c->said || c->uid != uid)
			continue;
		if (!n++ || c->deadline_ns < m->clients[*oldest].deadline_ns)
			*oldest = i;
	}
	return n;
}

/* Perhaps it has said something, and only the monitor is slow. */
static void push_out_silent(struct fg_monitor *m, uint32_t index)
{
	fg_client_ready(m, index);
	if (!m->clients[index].said)
		fg_client_drop(m, index);
}

/* The user with most connections; there are some. */
static uid_t greediest(const struct fg_monitor *m)
{
	static struct {
		uid_t uid;
		uint32_t n;
	} count[2 * FG_MAX_CLIENTS]; /* hashed by uid */
	uint32_t i, k, most = 0;
	uid_t uid = 0;

	memset(count, 0, sizeof(count));
	for (i = 0; i < FG_MAX_CLIENTS; i++) {
		if (m->clients[i].fd < 0)
			continue;
		k = m->clients[i].uid * 2654435761u % (2 * FG_MAX_CLIENTS);
		while (count[k].n && count[k].uid != m->clients[i].uid)
			k = (k + 1) % (2 * FG_MAX_CLIENTS);
		count[k].uid = m->clients[i].uid;
		if (++count[k].n > most) {
			most = count[k].n;
			uid = count[k].uid;
		}
	}
	return uid;
}

/* The oldest connection of the user with most: a silent one, if there is one. */
static void push_out_any(struct fg_monitor *m)
{
	uint32_t i, best = FG_MAX_CLIENTS;
	uid_t uid = greediest(m);

	for (i = 0; i < FG_MAX_CLIENTS; i++) {
		const struct fg_client *c = &m->clients[i], *b = &m->clients[best % FG_MAX_CLIENTS];

		if (c->fd >= 0 && c->uid == uid &&
		    (best == FG_MAX_CLIENTS || c->said < b->said ||
		     (c->said == b->said && c->deadline_ns < b->deadline_ns)))
			best = i;
	}
	if (best == FG_MAX_CLIENTS)
		return;
	m->dropped++;
	fg_client_drop(m, best);
}

/* Until the publisher has taken out its earlier array. */
static bool is_held(struct fg_monitor *m, struct fg_client *c)
{
	if (!c->waits || fg_process_is_leaving(m, c->waits - 1))
		return c->waits;
	c->waits = 0;
	c->tag = fg_fair_queue_tag(&m->queue, c->uid); /* the one that it had is long past */
	return false;
}

void fg_client_expire(struct fg_monitor *m, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < FG_MAX_CLIENTS && m->nr_clients; i++) {
		struct fg_client *c = &m->clients[i];

		if (c->fd < 0 || c->deadline_ns > now_ns)
			continue;
		/* Perhaps it has, and the monitor was stopped, or had no CPU, all that time. */
		fg_client_ready(m, i);
		if (c->fd < 0 || (c->said && !c->stalled && !is_held(m, c)))
			continue;
		m->dropped++;
		fg_client_drop(m, i);
	}
}

void fg_pass_credentials(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

bool fg_client_no_room(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

static bool accept_one(struct fg_monitor *m, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	uint32_t i, oldest = 0;
	bool sees_all;
	uid_t uid;

	if (fd < 0) {
		/*
		 * Out of descriptors: the listening socket stays ready, so give one back or wait a
		 * little.
		 */
		if (fg_client_no_room(errno)) {
			if (m->nr_clients)
				push_out_any(m);
			else
				poll(NULL, 0, 10);
		}
		return false;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	uid = fg_monitor_account(m, fd, cred.uid, &sees_all);
	if (silent(m, uid, &oldest) >= m->cfg.max_connections_per_uid)
		push_out_silent(m, oldest);
	if (m->nr_clients >= m->max_clients)
		push_out_any(m);
	for (i = 0; m->clients[i].fd >= 0; i++)
		;
	/*
	 * Already so as a rule, from the listening socket: not those that came before it was
	 * (systemd's).
	 */
	fg_pass_credentials(fd);
	m->clients[i] = (struct fg_client){.fd = fd,
					   .walk = -1,
					   .uid = uid,
					   .euid = cred.uid,
					   .sees_all = sees_all,
					   .deadline_ns = fg_now_ns() + FG_HELLO_NS};
	m->nr_clients++;
	if (fg_watch(m, fd, FG_EV_CLIENT, i))
		fg_client_drop(m, i);
	else
		fg_client_ready(m, i); /* as a rule it has said hello by now */
	return true;
}

#define ACCEPT_AT_ONCE 64 /* not varied */

/*
 * Until there is none: the last of the kernel's queue must not wait until all before it have been
 * served.
 */
void fg_client_accept(struct fg_monitor *m, int listen_fd)
{
	for (int i = 0; i < ACCEPT_AT_ONCE && accept_one(m, listen_fd); i++)
		;
}

/*
 * The peer as the kernel remembers it from connect().  SO_PEERPIDFD (6.5) works across pid
 * namespaces and cannot mean a later process with the same pid.  Its hello has to be its own:
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

/*
 * Whether it was told of this monitor.  How long that takes does not say how much of it is right.
 */
static bool knows_secret(const struct fg_monitor *m, const struct fg_told_hello *told, ssize_t size)
{
	unsigned wrong = 0;

	if (!m->cfg.secret[0])
		return true;
	for (int i = 0; i < FG_SECRET; i++)
		wrong |= (unsigned char)(told->secret[i] ^ m->cfg.secret[i]);
	return size == sizeof(*told) && !wrong;
}

static int check(const struct fg_monitor *m, const struct fg_told_hello *told, ssize_t size)
{
	const struct fg_hello *hello = &told->hello;

	if (size < (ssize_t)(2 * sizeof(uint32_t)) || hello->magic != FG_PROTO_MAGIC)
		return -EPROTO;
	if (hello->abi != FG_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (size != sizeof(*hello) && size != sizeof(*told))
		return -EPROTO;
	if (!knows_secret(m, told, size))
		return -EACCES;
	return hello->from % FG_PIECE ? -EINVAL : 0;
}

/*
 * 0: it has been welcomed; -EINPROGRESS: not yet, it queues once more; else it has been told
 * why not.
 */
static int welcome(struct fg_monitor *m, struct fg_client *c, const struct fg_told_hello *told,
		   ssize_t size, pid_t sender)
{
	struct fg_welcome w = {.magic = FG_PROTO_MAGIC, .abi = FG_ABI_VERSION};
	int fds[2] = {-1, bpf_map__fd(m->skel->maps.counters)};
	struct fg_peer p = {.sock = c->fd, .uid = c->uid, .walk = c->walk};
	int err = check(m, told, size);
	bool further = !err && told->hello.from;

	if (!err)
		err = peer(c->fd, sender, &p);
	if (!err) {
		err = fg_process_register(m, &p, &told->hello, &w, &fds[0]);
		close(p.pidfd);
		c->walk = p.walk;
	}
	if (err == -EINPROGRESS) {
		c->waits = p.waits;
		return err;
	}
	/* A process that wants more slots than it may have is served all the same. */
	if (!further)
		(*(err ? &m->refused : &m->registered))++;
	w.error = err;
	w.nr_cpus = libbpf_num_possible_cpus();
	answer(c->fd, &w, fds, err ? 0 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
	return err;
}

/*
 * What the kernel says of the sender (SO_PASSCRED).  Only root of the sender's pid namespace can
 * make it say another process of that namespace, and what it says has to be what connected.
 */
static ssize_t receive(int fd, void *packet, size_t size, pid_t *sender)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {packet, size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	/* Descriptors that somebody sends along find no room: the kernel closes them (brief.h). */
	ssize_t n;
	struct cmsghdr *c;
	struct ucred cred;

	fg_brief_begin(fd);
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	fg_brief_end();
	*sender = 0;
	for (c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(cred))) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			*sender = cred.pid;
		}
	return n;
}

/*
 * May ask about all processes (report.c), unless it is in a container, where /proc hides them from
 * root, too; any other user, about those that it pays for.
 */
static bool is_privileged(uid_t euid)
{
	return euid == 0 || euid == geteuid();
}

/* A packet, or the end of the connection: `flexguard run` only looks whether somebody listens. */
void fg_client_ready(struct fg_monitor *m, uint32_t index)
{
	struct fg_client *c = &m->clients[index];

	if (c->fd < 0 || c->said)
		return;
	memset(&c->packet, 0, sizeof(c->packet));
	c->size = receive(c->fd, &c->packet, sizeof(c->packet), &c->sender);
	if (c->size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (c->size <= 0) {
		fg_client_drop(m, index);
		return;
	}
	/* Only this one packet is read. */
	epoll_ctl(m->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	c->said = true;
	c->tag = fg_fair_queue_tag(&m->queue, c->uid);
	m->nr_waiting++;
}

/* For a client that has not waited for its answer nothing is done. */
static bool has_left(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* The client to be served next, of those that may be answered; NULL: none. */
static struct fg_client *next_in_turn(struct fg_monitor *m)
{
	for (;;) {
		struct fg_client *next = NULL;

		for (uint32_t i = 0; i < FG_MAX_CLIENTS; i++) {
			struct fg_client *c = &m->clients[i];

			if (c->fd < 0 || !c->said || c->stalled || is_held(m, c))
				continue;
			if (!next || c->tag < next->tag)
				next = c;
		}
		if (!next || !fg_unread_is_full(m, next->uid))
			return next;
		next->stalled =
		    true; /* so it is not looked at again before its user has read one */
	}
}

bool fg_client_serve(struct fg_monitor *m)
{
	struct fg_client *c;
	int fd, err = 0;
	uid_t uid;

	if (!m->nr_waiting || !fg_publisher_has_room(m))
		return false;
	c = next_in_turn(m);
	if (!c)
		return false;
	fg_fair_queue_serve(&m->queue, c->tag);
	if (has_left(c->fd) ||
	    (c->packet.magic == FG_QUERY_MAGIC && m->cfg.secret[0] && !is_privileged(c->euid))) {
		m->dropped++;
		err = -EPIPE;
	} else if (c->packet.magic == FG_QUERY_MAGIC) {
		fg_report_answer(m, c->fd, &c->packet.query, c->size,
				 is_privileged(c->euid) && c->sees_all, c->uid);
	} else {
		err = welcome(m, c, &c->packet.hello, c->size, c->sender);
	}
	uid = c->uid;
	if (err == -EINPROGRESS) {
		c->tag = fg_fair_queue_tag(&m->queue, uid);
		return true;
	}
	fd = release(m, c);
	if (!err && fg_unread_keep(m, fd, uid))
		return true;
	fg_brief_close(fd);
	fg_unread_admit(m, uid);
	return true;
}
