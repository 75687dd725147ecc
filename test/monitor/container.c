// SPDX-License-Identifier: MIT
/*
 * A client of another user in pid, mount and user namespaces of its own is served like
 * any other: who it is comes from its socket.  Its death is noticed as well.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include "harness.h"

static struct monitor m;

static void inside(void *uid)
{
	struct client own;
	struct actor a;

	if (uid)
		CHECK(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	CHECK(getpid() == 1);
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL)); /* a change of uid would have forgotten it */
	client_join(&own, m.name, 8);
	bind_thread(&own, 1);
	a.client = &own;
	a.slot = 1;
	actor_acquire(&a);
	for (;;)
		pause();
}

static void container(void *uid)
{
	pid_t pid;

	if (unshare((uid ? 0 : CLONE_NEWUSER) | CLONE_NEWPID | CLONE_NEWNS))
		skip("no namespaces may be made here: %s", strerror(errno));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		inside(uid);
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (;;)
		pause();
}

int main(void)
{
	uintptr_t other = geteuid() ? 0 : 65534;
	struct client c;
	pid_t pid;
	int status;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	for (int round = 0; round < 2; round++) {
		pid = spawn(container, (void *)other);
		/* Asleep as a holder: counted; and not any more when it is gone. */
		while (!__atomic_load_n(&c.counters->dom[FG_DOMAIN_ALL].blocked,
					__ATOMIC_RELAXED)) {
			if (waitpid(pid, &status, WNOHANG) == pid)
				_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
			usleep(1000);
		}
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, NULL, 0) == pid);
		WAIT_FOR(all_zero(c.counters));
	}
	monitor_stop(&m);
	return 0;
}
