// SPDX-License-Identifier: MIT
/*
 * A process has one slot array, in pieces that come one by one: threads of each are bound and
 * counted; every piece is the same one when it is asked for again; there is an end to them.  Nobody
 * else is given one.  A process with several that becomes another program, or another user, is
 * served at its next hello, and not refused until they are out of the way.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;

static int ask(uint32_t from, struct client *c)
{
	struct fg_hello hello = {
	    .magic = FG_PROTO_MAGIC,
	    .abi = FG_ABI_VERSION,
	    .want_slots = FG_PIECE,
	    .from = from,
	    .tls_offset = tls_offset(),
	};
	int sock = client_connect(m.name), fds[2];
	struct fg_welcome w;

	CHECK(sock >= 0 && !client_exchange(sock, &hello, sizeof(hello), &w, fds));
	close(sock);
	if (w.error) {
		CHECK(fds[0] < 0 && fds[1] < 0);
		return w.error;
	}
	CHECK(fds[0] >= 0 && fds[1] >= 0 && w.slots == from + FG_PIECE);
	if (c) {
		c->slots = mmap(NULL, FG_PIECE * sizeof(struct fg_slot), PROT_READ | PROT_WRITE,
				MAP_SHARED, fds[0], 0);
		CHECK(c->slots != MAP_FAILED);
		c->slots -= from; /* so that numbers are those of the whole array */
	}
	close(fds[0]);
	close(fds[1]);
	return 0;
}

static void child(void *arg)
{
	(void)arg;
	CHECK(ask(FG_PIECE, NULL) == -ESTALE);
	CHECK(!ask(0, NULL));
	CHECK(ask(2 * FG_PIECE, NULL) == -EINVAL);
}

/* A thread in the piece that begins at `from` is seen asleep with its lock. */
static void is_counted(struct client *c, const struct fg_counters *counters, uint32_t slot)
{
	struct actor a;

	actor_start(&a, c, slot, -1, SCHED_OTHER);
	actor_acquire(&a);
	actor_tell(&a, ACT_YIELD);
	actor_lie_down(&a);
	/* The last is counted last, and by another CPU. */
	WAIT_FOR(counters->dom[FG_DOMAIN_ALL].blocked == 1 &&
		 c->slots[slot].bound == (uint32_t)a.tid && c->slots[slot].blocked);
	actor_release(&a);
	actor_join(&a);
	WAIT_FOR(all_zero(counters));
}

static void become(void *program)
{
	for (uint32_t n = 0; n < FG_PIECES; n++)
		CHECK(!ask(n * FG_PIECE, NULL));
	if (program) {
		execl("/proc/self/exe", "grow", m.name, NULL);
		fail("exec");
	}
	CHECK(!setresuid(1001, 1001, 1001));
	CHECK(!ask(0, NULL) && !ask(FG_PIECE, NULL));
}

static void becomes_another(void)
{
	uint64_t refused = monitor_report(m.name).refused;

	for (int i = 0; i < 10; i++) {
		reap(spawn(become, &m));
		if (!geteuid())
			reap(spawn(become, NULL));
	}
	CHECK(monitor_report(m.name).refused == refused);
}

int main(int argc, char **argv)
{
	struct client first, piece[FG_PIECES], again;
	uint32_t n;

	test_begin();
	if (argc == 2) {
		snprintf(m.name, sizeof(m.name), "%s", argv[1]);
		CHECK(!ask(0, NULL) && !ask(FG_PIECE, NULL));
		return 0;
	}
	monitor_start(&m, NULL);
	CHECK(ask(FG_PIECE, NULL) == -ESTALE);
	client_join(&first, m.name, FG_PIECE);
	CHECK(first.welcome.slots == FG_PIECE);
	CHECK(ask(2 * FG_PIECE, NULL) == -EINVAL);
	CHECK(ask(7, NULL) == -EINVAL);
	for (n = 1; n < FG_PIECES; n++) {
		CHECK(!ask(n * FG_PIECE, &piece[n]));
		if (n % 3 == 1)
			is_counted(&piece[n], first.counters, n * FG_PIECE + n);
	}
	CHECK(ask(n * FG_PIECE, NULL) == -EDQUOT);
	CHECK(ask(0xfffffe00, NULL) == -EINVAL);
	/* What is asked for again is there still. */
	CHECK(!ask(3 * FG_PIECE, &again));
	piece[3].slots[3 * FG_PIECE + 5].pending = 4711;
	CHECK(again.slots[3 * FG_PIECE + 5].pending == 4711);
	CHECK(!ask(0, &again));
	first.slots[5].pending = 4712;
	CHECK(again.slots[5].pending == 4712);
	/* Neighbours in the table of pieces are other processes' arrays. */
	reap(spawn(child, NULL));
	is_counted(&first, first.counters, FG_PIECE - 1);
	becomes_another();
	bind_thread(&first, 1);
	monitor_stop(&m);
	return 0;
}
