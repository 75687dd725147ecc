// SPDX-License-Identifier: MIT
/*
 * Clients that connect and say nothing are dropped after a second, and hold up
 * nobody meanwhile, be they as many as they like.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include "harness.h"

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
	monitor_stop(&m);
	return 0;
}
