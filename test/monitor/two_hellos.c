// SPDX-License-Identifier: MIT
/*
 * A second hello on the same connection is not answered; on a new one it is answered with the same
 * slots: threads stay bound, counts stay as they are.  Another copy of the library, whose
 * thread-local storage is elsewhere, gets fresh ones, and threads are bound again.
 */
#include <sched.h>
#include <sys/socket.h>
#include "harness.h"

int main(void)
{
	/* One place only: the second hello must not need another. */
	struct fg_monitor_config cfg = {.max_processes = 1};
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome;
	struct monitor m;
	struct client c, d;
	struct actor a;
	int sock, fds[2];

	test_begin();
	monitor_start(&m, &cfg);
	sock = client_connect(m.name);
	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds) && !welcome.error);
	CHECK(client_exchange(sock, &hello, sizeof(hello), &welcome, fds) < 0);
	close(sock);

	client_join(&c, m.name, 8);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);

	client_join(&d, m.name, 64);
	CHECK(d.welcome.slots == c.welcome.slots && d.slots[1].bound == (uint32_t)a.tid);
	CHECK(d.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	client_leave(&d);

	/* While a thread is counted: its count goes when it runs. */
	hello.want_slots = 64;
	hello.tls_offset += 4096;
	sock = client_connect(m.name);
	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds) && !welcome.error);
	close(sock);
	client_join(&d, m.name, 64);
	CHECK(d.welcome.slots == 64 && !d.slots[1].bound);
	a.client = &d;
	d.slots[1].owner_id = 1;
	CHECK(d.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	actor_tell(&a, ACT_YIELD);
	WAIT_FOR(d.slots[1].bound == (uint32_t)a.tid);
	WAIT_FOR(all_zero(d.counters));
	actor_acquire(&a);
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(d.counters->dom[FG_DOMAIN_ALL].blocked == 1 && d.slots[1].blocked);
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
