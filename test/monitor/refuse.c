// SPDX-License-Identifier: MIT
/* A hello that is wrong is answered with an error and no descriptors. */
#include <errno.h>
#include "harness.h"

static struct monitor m;

static int try(const void *hello, size_t size)
{
	struct fg_welcome welcome = {0};
	int sock = client_connect(m.name), fds[2], err;

	CHECK(sock >= 0);
	err = client_exchange(sock, hello, size, &welcome, fds);
	close(sock);
	CHECK(!err);
	CHECK(welcome.abi == FG_ABI_VERSION);
	if (welcome.error)
		CHECK(fds[0] == -1 && fds[1] == -1 && !welcome.slots);
	else
		CHECK(fds[0] >= 0 && fds[1] >= 0 && welcome.slots);
	return welcome.error;
}

int main(void)
{
	const struct fg_hello good = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, 64};
	struct {
		struct fg_hello hello;
		char more[4000];
	} big = {good, ""};
	struct fg_hello h;

	test_begin();
	monitor_start(&m, NULL);
	CHECK(!try(&good, sizeof(good)));
	h = good, h.magic++;
	CHECK(try(&h, sizeof(h)) == -EPROTO);
	h = good, h.abi++;
	CHECK(try(&h, sizeof(h)) == -EPROTONOSUPPORT);
	h = good, h.from = 1;
	CHECK(try(&h, sizeof(h)) == -EINVAL);
	CHECK(try(&good, sizeof(good) - 1) == -EPROTO);
	CHECK(try(&good, 1) == -EPROTO);
	CHECK(try(&big, sizeof(big)) == -EPROTO);
	h = good, h.want_slots = ~0u; /* not wrong: gets as many as one may have */
	CHECK(!try(&h, sizeof(h)));
	h = good, h.want_slots = 0;
	CHECK(!try(&h, sizeof(h)));
	monitor_stop(&m);
	return 0;
}
