// SPDX-License-Identifier: MIT
/*
 * Clients that connect and say nothing are dropped after a second, and hold up
 * nobody meanwhile, be they as many as they like.  One that has said hello in time is served,
 * though the monitor itself was stopped until its second was over.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include "harness.h"

/* The second is over, and the tick that looks is ready before the hello is. */
static void stopped(struct monitor *m)
{
	const struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	uint64_t before = monitor_report(m->name).dropped;
	struct fg_welcome w = {.error = -1};
	int sock = client_connect(m->name);

	CHECK(sock >= 0);
	monitor_report(m->name); /* so it has taken in the one before */
	CHECK(!kill(m->pid, SIGSTOP));
	usleep(300000);
	CHECK(send(sock, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello));
	sleep(1);
	CHECK(!kill(m->pid, SIGCONT));
	CHECK(recv(sock, &w, sizeof(w), 0) == sizeof(w) && !w.error);
	close(sock);
	CHECK(monitor_report(m->name).dropped == before);
}

int main(void)
{
	enum { SILENT = 200 };
	int sock[SILENT], i;
	struct monitor m;
	struct client c;
	char byte;

	test_begin();
	monitor_start(&m, NULL);
	for (i = 0; i < SILENT; i++) {
		sock[i] = client_connect(m.name);
		CHECK(sock[i] >= 0);
	}
	client_join(&c, m.name, 8);
	for (i = 0; i < SILENT; i++) {
		struct pollfd p = {.fd = sock[i], .events = POLLIN};

		CHECK(poll(&p, 1, DEADLINE_S * 1000) == 1);
		CHECK(recv(sock[i], &byte, 1, MSG_DONTWAIT) <= 0);
		close(sock[i]);
	}
	/* One that leaves at once, and one that half closes. */
	close(client_connect(m.name));
	i = client_connect(m.name);
	CHECK(!shutdown(i, SHUT_WR));
	CHECK(recv(i, &byte, 1, 0) <= 0);
	client_leave(&c);
	client_join(&c, m.name, 8);
	stopped(&m);
	monitor_stop(&m);
	return 0;
}
