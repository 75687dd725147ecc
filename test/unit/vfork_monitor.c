/* SPDX-License-Identifier: MIT */
/*
 * A child of vfork, which has its parent's memory and a process id of its own, does not ask for a
 * monitor: what it would be given is of a process that ends soon, and its parent could have none.
 * The parent, whose retry it is, asks afterwards.  A child of clone() that has memory of its own
 * asks, though it ran no fork handler.
 *
 * This program is the monitor; FLEXGUARD_SOCKET is the abstract name at which it listens.
 */
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "../tools/check.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int listener, of_parent, of_others;

static bool somebody_comes(void)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Counts who has come; nobody is answered. */
static void count_them(void)
{
	while (somebody_comes()) {
		struct ucred who = {0};
		socklen_t size = sizeof(who);
		int fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0);
		CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size), 0);
		++*(who.pid == getpid() ? &of_parent : &of_others);
		close(fd);
	}
}

static void *holds(void *unused)
{
	lock(&held);
	pause();
	return unused;
}

static void wait_a_little(void)
{
	struct timespec at = in_us(CLOCK_REALTIME, 20000);

	CHECK_EQ(pthread_mutex_timedlock(&held, &at), ETIMEDOUT);
}

int main(int argc, char **argv)
{
	const char *name = getenv("FLEXGUARD_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	pid_t pid;

	check_begin(argv[0], 60);
	if (__rseq_size == 0) /* nor does anybody ask then */
		check_skip("glibc has not registered rseq");
	CHECK(name && *name == '@' && strlen(name) < sizeof(un.sun_path));
	memcpy(un.sun_path + 1, name + 1, strlen(name) - 1);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&un,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
		 0);
	CHECK_EQ(listen(listener, 16), 0);
	start(holds, NULL);
	while (!pthread_mutex_trylock(&held))
		unlock(&held);

	count_them(); /* so who stands in the queue next is the child */
	pid = vfork();
	if (!pid) {
		for (int i = 0; i < 25 && !somebody_comes(); i++)
			wait_a_little();
		_exit(0);
	}
	CHECK(pid > 0);
	check_child(pid);
	count_them();
	CHECK_EQ(of_others, 0);
	for (of_parent = 0; !of_parent; count_them())
		wait_a_little();

	pid = check_clone();
	if (!pid) {
		check_watchdog(60);
		while (!somebody_comes())
			wait_a_little();
		_exit(0);
	}
	CHECK(pid > 0);
	check_child(pid);
	count_them();
	CHECK_EQ(of_others, 1);
	return 0;
}
