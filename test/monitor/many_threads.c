// SPDX-License-Identifier: MIT
/*
 * A process with many threads, of which the last one says hello, with credentials of its own: the
 * monitor has to look at all the others first.  It looks at so many a turn, and another user's
 * hellos, which came later, are answered meanwhile.
 */
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "harness.h"
#include "monitor/internal.h"
#include "monitor.skel.h"

#define THREADS 2000 /* four turns of 512 */
#define OTHERS	3

static char name[48];

static void hello(void)
{
	struct fg_hello h = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome w;
	int sock = client_connect(name), fds[2];

	CHECK(sock >= 0 && !client_exchange(sock, &h, sizeof(h), &w, fds));
	if (w.error)
		fail("hello: %s", strerror(-w.error));
}

static void become(uid_t uid)
{
	CHECK(!setresuid(uid, uid, uid));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *last(void *arg)
{
	/* To change anything makes new credentials, of this thread. */
	CHECK(!syscall(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0));
	hello();
	return arg;
}

static void have_many_threads(void *arg)
{
	pthread_attr_t small;
	pthread_t t;

	(void)arg;
	become(1001);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t, &small, wait_for_ever, NULL))
			skip("only %d threads may be made here", i);
	CHECK(!pthread_create(&t, &small, last, NULL) && !pthread_join(t, NULL));
}

static void other(void *arg)
{
	(void)arg;
	become(1002);
	hello();
}

/* Connections of this user that wait for an answer. */
static uint32_t waiting(const struct fg_monitor *m, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FG_MAX_CLIENTS; i++)
		n += m->clients[i].fd >= 0 && m->clients[i].said && m->clients[i].uid == uid;
	return n;
}

static void take_in(struct fg_monitor *m, int listener, uint32_t nr, pid_t pid)
{
	int status;

	for (int ms = 0; m->nr_waiting < nr; ms++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		CHECK(ms < DEADLINE_S * 1000);
		fg_client_accept(m, listener);
		for (uint32_t i = 0; i < FG_MAX_CLIENTS; i++)
			fg_client_ready(m, i);
		usleep(1000);
	}
}

int main(void)
{
	struct fg_monitor *m;
	pid_t many, others[OTHERS];
	uint32_t turns = 0;
	int listener;

	test_begin();
	if (geteuid())
		skip("only root can be several users");
	m = monitor_open_or_skip(NULL);
	snprintf(name, sizeof(name), "@flexguard-test-%d", getpid());
	listener = fg_monitor_listen(name, 0666);
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	CHECK(listener >= 0 && m->epoll_fd >= 0 && !fg_monitor_tick(m, 0));
	fg_pass_credentials(listener);
	fg_unread_limit(m);
	/* Children first: the publisher's threads would not be in them. */
	many = spawn(have_many_threads, NULL);
	take_in(m, listener, 1, many);
	for (uint32_t i = 0; i < OTHERS; i++) {
		others[i] = spawn(other, NULL);
		take_in(m, listener, 2 + i, others[i]);
	}
	CHECK(!fg_publisher_start(m));
	while (m->nr_waiting) {
		turns += fg_client_serve(m);
		if (waiting(m, 1002) && !waiting(m, 1001))
			fail("the many were answered in turn %u, before all others", turns);
	}
	printf("%u turns for %d threads and %d others\n", turns, THREADS + 2, OTHERS);
	reap(many);
	for (uint32_t i = 0; i < OTHERS; i++)
		reap(others[i]);
	fg_publisher_stop(m);
	fg_monitor_close(m);
	return 0;
}
