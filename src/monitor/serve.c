// SPDX-License-Identifier: MIT
/*
 * The monitor's loop: clients, ends of processes, and the heartbeat with the
 * audit behind it.  Nothing in it blocks, but for some ms to attach or detach, and to say where
 * that fails (hooks.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "monitor/brief.h"
#include "monitor/internal.h"

static int start_timer(void)
{
	struct itimerspec every = {
	    .it_interval.tv_nsec = FG_HEARTBEAT_NS,
	    .it_value.tv_nsec = FG_HEARTBEAT_NS,
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && timerfd_settime(fd, 0, &every, NULL)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The audit walks all threads of the machine: keep that below 1 % of one CPU. */
static void audit_if_due(struct fg_monitor *m, uint64_t now)
{
	uint64_t before;

	if (now < m->audit_next_ns || !m->nr_processes)
		return;
	before = fg_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	fg_monitor_audit(m);
	m->audit_next_ns = now + 100 * (fg_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
}

static int on_tick(struct fg_monitor *m, int timer_fd)
{
	uint64_t now = fg_now_ns(), expirations;
	int err;

	if (read(timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		return -errno;
	err = fg_monitor_tick(m, 0);
	fg_vcpus_tick(m, now);
	fg_unread_tick(m);
	fg_client_expire(m, now);
	fg_process_tick(m, now);
	fg_hooks_tick(m, now);
	fg_report_tick(m);
	fg_arrays_collect(m);
	audit_if_due(m, now);
	return err;
}

/* One that connects there has seen whose lock it is.  Not varied. */
#define HANG_UP_AT_ONCE 64

static void hang_up(int lock_fd)
{
	int fd;

	for (int i = 0; i < HANG_UP_AT_ONCE; i++) {
		fd = accept4(lock_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			if (fg_client_no_room(errno)) /* it stays ready */
				poll(NULL, 0, 10);
			return;
		}
		fg_brief_close(fd);
	}
}

#define SERVE_AT_ONCE 4 /* not varied */

static int loop(struct fg_monitor *m, int listen_fd, int lock_fd, int timer_fd)
{
	struct epoll_event events[32];
	bool more = false;
	int i, n, err;

	for (;;) {
		n = epoll_wait(m->epoll_fd, events, 32, more ? 0 : -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (i = 0; i < n; i++) {
			uint32_t index = (uint32_t)events[i].data.u64;

			/*
			 * An event may be out of date: an earlier one of this batch freed the
			 * entry.  Each handler looks again before it acts.
			 */
			switch ((enum fg_event)(events[i].data.u64 >> 32)) {
			case FG_EV_STOP: return 0;
			case FG_EV_TICK:
				err = on_tick(m, timer_fd);
				if (err)
					return err;
				break;
			case FG_EV_VCPUS: fg_vcpus_ready(m); break;
			case FG_EV_LISTEN: fg_client_accept(m, listen_fd); break;
			case FG_EV_LOCK: hang_up(lock_fd); break;
			case FG_EV_CLIENT: fg_client_ready(m, index); break;
			case FG_EV_READ: fg_unread_ready(m, (int)index); break;
			case FG_EV_PROCESS: fg_process_reap(m, index); break;
			case FG_EV_ROOM: fg_publisher_heard(m); break;
			}
		}
		/* Some, and then those that have come meanwhile. */
		for (i = 0; i < SERVE_AT_ONCE && (more = fg_client_serve(m)); i++)
			;
	}
}

/*
 * systemd's may be longer.  Not at an abstract name: the kernel would tell those who connect that
 * it is this user who listens, and not root any more, whom they trust there.
 */
static void shorten_queue(int listen_fd)
{
	struct sockaddr_un name = {0};
	socklen_t size = sizeof(name);

	if (!getsockname(listen_fd, (struct sockaddr *)&name, &size) && name.sun_path[0])
		listen(listen_fd, FG_BACKLOG);
}

int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int lock_fd, int stop_fd)
{
	int timer_fd = -1, err = 0;

	m->vcpus.fd = -1;
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->epoll_fd < 0)
		return -errno;
	/* accept must not wait for a client that has changed its mind. */
	fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK);
	fg_pass_credentials(listen_fd);
	fg_brief_refuse(listen_fd);
	shorten_queue(listen_fd);
	timer_fd = start_timer();
	if (timer_fd < 0)
		err = -errno;
	fg_unread_limit(m);
	m->started_ns = fg_now_ns();
	/* The first client must find a fresh heartbeat, however long ago the program was loaded. */
	if (!err)
		err = fg_monitor_tick(m, 0);
	if (!err)
		err = fg_watch(m, timer_fd, FG_EV_TICK, 0);
	if (!err)
		err = fg_watch(m, listen_fd, FG_EV_LISTEN, 0);
	if (lock_fd >= 0)
		fg_brief_refuse(lock_fd);
	if (!err && lock_fd >= 0)
		err = fg_watch(m, lock_fd, FG_EV_LOCK, 0);
	if (!err && stop_fd >= 0)
		err = fg_watch(m, stop_fd, FG_EV_STOP, 0);
	if (!err)
		err = fg_vcpus_start(m);
	if (!err)
		err = fg_publisher_start(m);
	if (!err)
		err = loop(m, listen_fd, lock_fd, timer_fd);
	fg_publisher_stop(m);
	fg_vcpus_stop(m);
	if (timer_fd >= 0)
		close(timer_fd);
	return err;
}
