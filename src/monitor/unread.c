// SPDX-License-Identifier: MIT
/*
 * Answers that have not been read.  The kernel counts the descriptors that a user has sent and
 * nobody has received yet, and refuses more of them than RLIMIT_NOFILE (ETOOMANYREFS; unix(7)): all
 * that the monitor has under way to all its clients.  A packet that has been sent cannot be taken
 * back.  So the monitor counts, for each user, the connections that have not read theirs; a user
 * with too many gets no answer until it reads one.
 *
 * A packet counts as memory of the socket that sent it (SIOCOUTQ) until it is received, or the last
 * descriptor of the receiving socket is closed.  So the monitor keeps its end open until then.
 */
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "monitor/brief.h"
#include "monitor/internal.h"

/*
 * A half of what the kernel allows, two descriptors each, shared by as many users as have domains.
 */
void fg_unread_limit(struct fg_monitor *m)
{
	struct rlimit files;
	rlim_t max;

	m->max_unread = FG_MAX_UNREAD / FG_MAX_DOMAINS;
	if (m->max_unread > m->cfg.max_connections_per_uid)
		m->max_unread = m->cfg.max_connections_per_uid;
	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	max = files.rlim_cur / 4 / FG_MAX_DOMAINS;
	if (m->max_unread > max)
		m->max_unread = max ? (uint32_t)max : 1;
}

/*
 * The last byte is given back after the socket's poll has been woken (sock_wfree, net/core/sock.c).
 */
static bool is_read(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) || bytes <= 1;
}

bool fg_unread_keep(struct fg_monitor *m, int fd, uid_t uid)
{
	/*
	 * An edge each time that the packet's memory is given back.  Without, the next tick finds
	 * it.
	 */
	struct epoll_event ev = {.events = EPOLLOUT | EPOLLET,
				 .data.u64 = (uint64_t)FG_EV_READ << 32 | (uint32_t)fd};

	/* More users than domains: an answer that is not counted, rather than none. */
	if (is_read(fd) || m->nr_unread == FG_MAX_UNREAD)
		return false;
	m->unread[m->nr_unread++] = (struct fg_unread){.fd = fd, .uid = uid};
	epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	return true;
}

bool fg_unread_is_full(const struct fg_monitor *m, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->nr_unread; i++)
		n += m->unread[i].uid == uid;
	return n >= m->max_unread;
}

void fg_unread_admit(struct fg_monitor *m, uid_t uid)
{
	struct fg_client *first = NULL;

	for (uint32_t i = 0; i < FG_MAX_CLIENTS && m->nr_waiting; i++) {
		struct fg_client *c = &m->clients[i];

		if (c->fd >= 0 && c->stalled && c->uid == uid && (!first || c->tag < first->tag))
			first = c;
	}
	if (!first)
		return;
	first->stalled = false;
	first->tag = fg_fair_queue_tag(&m->queue, uid); /* the one that it had is long past */
}

static bool look_again(struct fg_monitor *m, uint32_t i)
{
	uid_t uid = m->unread[i].uid;

	if (!is_read(m->unread[i].fd))
		return false;
	fg_brief_close(m->unread[i].fd);
	m->unread[i] = m->unread[--m->nr_unread];
	fg_unread_admit(m, uid);
	return true;
}

void fg_unread_ready(struct fg_monitor *m, int fd)
{
	for (uint32_t i = 0; i < m->nr_unread; i++)
		if (m->unread[i].fd == fd) {
			look_again(m, i);
			return;
		}
}

void fg_unread_tick(struct fg_monitor *m)
{
	for (uint32_t i = 0; i < m->nr_unread;)
		i += !look_again(m, i);
}

void fg_unread_close(struct fg_monitor *m)
{
	while (m->nr_unread)
		fg_brief_close(m->unread[--m->nr_unread].fd);
}
