// SPDX-License-Identifier: MIT
/*
 * A process that becomes somebody else, as a daemon does that gives up root, or that may not be
 * read any more, is not looked at until it says hello again; then it is, though its memory is not
 * dumpable.  One thread with credentials of its own (raw setresuid) is not looked at, its fellows
 * are.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "harness.h"

#define USER 1001

static struct monitor m;
static struct client c;

static uint32_t of(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* It sleeps many times as the owner of a lock: is it seen to? */
static bool is_seen(struct client *client, uint32_t slot)
{
	struct actor a = {.client = client, .slot = slot};
	uint64_t before = client->slots[slot].blocked;

	actor_acquire(&a);
	for (int i = 0; i < 50; i++)
		usleep(100);
	actor_release(&a);
	return client->slots[slot].blocked > before + 10;
}

static void join(void)
{
	client_join(&c, m.name, 8);
	/* As the library: what an earlier hello is told while this one is served is not its. */
	__atomic_store_n(&c.slots[0].ended, 0, __ATOMIC_RELEASE);
	bind_thread(&c, 1);
	usleep(100);
	CHECK(is_seen(&c, 1));
	CHECK(!of(&c.slots[0].ended));
}

static void becomes_user(void *unused)
{
	join();
	CHECK(!setresgid(USER, USER, USER) && !setresuid(USER, USER, USER));
	usleep(100);
	CHECK(!is_seen(&c, 1));
	WAIT_FOR(of(&c.slots[0].ended));
	CHECK(prctl(PR_GET_DUMPABLE) != 1);
	client_leave(&c);
	join();
}

static void hides_memory(void *unused)
{
	join();
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	usleep(100);
	CHECK(!is_seen(&c, 1));
	WAIT_FOR(of(&c.slots[0].ended));
	client_leave(&c);
	join();
	/* More than was asked for when it said hello. */
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
	CHECK(is_seen(&c, 1));
}

static void *alone(void *unused)
{
	/* The system call: glibc would change all threads. */
	CHECK(!syscall(SYS_setresuid, USER, USER, USER));
	bind_thread(&c, 2);
	usleep(100);
	CHECK(!is_seen(&c, 2) && !c.slots[2].bound);
	return NULL;
}

static void changes_one_thread(void *unused)
{
	pthread_t t;

	join();
	/* What one thread does about its user counts for the memory, which is all threads'. */
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	client_leave(&c);
	join();
	CHECK(!pthread_create(&t, NULL, alone, NULL) && !pthread_join(t, NULL));
	CHECK(is_seen(&c, 1));
	CHECK(!of(&c.slots[0].ended));
}

static int *sock_of_parent;

static void says_hello_for_parent(void *expected)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome;
	int fds[2];

	CHECK(!client_exchange(*sock_of_parent, &hello, sizeof(hello), &welcome, fds));
	CHECK(welcome.error == -EACCES && fds[0] < 0 && fds[1] < 0);
}

/* Nor does a hello on a connection from before the change count. */
static void hello_of_another(void *unused)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome;
	int sock = client_connect(m.name), fds[2];

	sock_of_parent = &sock;
	join();
	reap(spawn(says_hello_for_parent, NULL));
	CHECK(is_seen(&c, 1)); /* who has said hello himself still is */
	close(sock);
	sock = client_connect(m.name);
	CHECK(!setresuid(USER, USER, USER));
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds) &&
	      welcome.error == -EACCES);
	client_leave(&c);
	join();
}

int main(void)
{
	static void (*const cases[])(void *) = {becomes_user, hides_memory, changes_one_thread,
						hello_of_another};

	test_begin();
	if (geteuid())
		skip("only root can become somebody else");
	monitor_start(&m, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		reap(spawn(cases[i], NULL));
	monitor_stop(&m);
	return 0;
}
