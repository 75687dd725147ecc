// SPDX-License-Identifier: MIT
/*
 * Eight processes of one user say hello 200 times in all without waiting for an answer; then eleven
 * of another user say hello.  None of these is lost or refused, and all of them are answered before
 * most of the flood: counted, not timed.  The monitor stands still until all have come, so that the
 * order is known.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include "harness.h"

enum { FLOODERS = 8, EACH = 25, HONEST = 11 };

static struct monitor m;
static struct shared {
	uint32_t sent, go, answers; /* of the flood */
	uint32_t honest_sent, honest_done;
} *s;

static struct fg_hello hello(void)
{
	return (struct fg_hello){FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
}

static void be(uid_t uid)
{
	CHECK(!setresgid(uid, uid, uid) && !setresuid(uid, uid, uid));
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
}

static void flooder(void *unused)
{
	struct fg_hello h = hello();
	struct fg_welcome w;
	int sock[EACH];

	be(1001);
	for (int i = 0; i < EACH; i++) {
		sock[i] = client_connect(m.name);
		CHECK(sock[i] >= 0 && send(sock[i], &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h));
	}
	__atomic_fetch_add(&s->sent, 1, __ATOMIC_RELEASE);
	WAIT_FOR(__atomic_load_n(&s->go, __ATOMIC_ACQUIRE));
	for (int i = 0; i < EACH; i++)
		if (recv(sock[i], &w, sizeof(w), MSG_DONTWAIT) == sizeof(w))
			__atomic_fetch_add(&s->answers, 1, __ATOMIC_RELAXED);
}

static void honest(void *unused)
{
	struct fg_hello h = hello();
	struct fg_welcome w = {.error = -1};
	int sock;

	be(1002);
	sock = client_connect(m.name);
	CHECK(sock >= 0 && send(sock, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h));
	__atomic_fetch_add(&s->honest_sent, 1, __ATOMIC_RELEASE);
	CHECK(recv(sock, &w, sizeof(w), 0) == sizeof(w) && !w.error);
	__atomic_fetch_add(&s->honest_done, 1, __ATOMIC_RELEASE);
}

int main(void)
{
	pid_t flood[FLOODERS], others[HONEST];
	uint64_t start;

	test_begin();
	if (geteuid())
		skip("only root can be several users");
	s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	monitor_start(&m, NULL);
	CHECK(!kill(m.pid, SIGSTOP));
	for (int i = 0; i < FLOODERS; i++)
		flood[i] = spawn(flooder, NULL);
	WAIT_FOR(__atomic_load_n(&s->sent, __ATOMIC_ACQUIRE) == FLOODERS);
	for (int i = 0; i < HONEST; i++)
		others[i] = spawn(honest, NULL);
	WAIT_FOR(__atomic_load_n(&s->honest_sent, __ATOMIC_ACQUIRE) == HONEST);
	start = fg_now_ns();
	CHECK(!kill(m.pid, SIGCONT));
	WAIT_FOR(__atomic_load_n(&s->honest_done, __ATOMIC_ACQUIRE) == HONEST);
	CHECK(!kill(m.pid, SIGSTOP));
	start = fg_now_ns() - start;
	__atomic_store_n(&s->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < FLOODERS; i++)
		reap(flood[i]);
	for (int i = 0; i < HONEST; i++)
		reap(others[i]);
	CHECK(!kill(m.pid, SIGCONT));
	printf("%u of %d of the flood were answered before the last of the others, in %.1f ms\n",
	       s->answers, FLOODERS * EACH, start / 1e6);
	CHECK(s->answers < FLOODERS * EACH / 2);
	monitor_stop(&m);
	return 0;
}
