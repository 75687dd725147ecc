// SPDX-License-Identifier: MIT
/*
 * Quotas: one user's processes do not use up the places of the others, a place
 * is given back when a process dies, and slots are granted up to the limit.
 * Users have domains of their own.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "harness.h"

static struct monitor m;
static int32_t *answer;
static uint32_t *domain;

static void join(void *uid)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 100000, 0, tls_offset()};
	struct fg_welcome welcome = {0};
	int sock, fds[2];

	if (uid) {
		CHECK(!setresuid((uintptr_t)uid, (uintptr_t)uid, (uintptr_t)uid));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	sock = client_connect(m.name);
	CHECK(sock >= 0);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds));
	CHECK(welcome.error || welcome.slots == 96);
	*domain = welcome.domain;
	__atomic_store_n(answer, welcome.error, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static pid_t try_once(uintptr_t uid)
{
	pid_t pid;

	*answer = 1;
	pid = spawn(join, (void *)uid);
	WAIT_FOR(__atomic_load_n(answer, __ATOMIC_ACQUIRE) != 1);
	return pid;
}

static pid_t try(uintptr_t uid, int expected)
{
	pid_t pid = try_once(uid);

	if (*answer != expected)
		fail("uid %d was answered %d, not %d", (int)uid, *answer, expected);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
	struct fg_monitor_config cfg = {.max_processes = 4, .max_per_uid = 2, .max_slots = 96};
	pid_t a[4], no;
	uint32_t first;

	test_begin();
	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	domain = (uint32_t *)answer + 1;
	if (geteuid())
		skip("only root can be several users");
	monitor_start(&m, &cfg);
	a[0] = try(1001, 0);
	first = *domain;
	a[1] = try(1001, 0);
	CHECK(*domain == first && first != FG_DOMAIN_ALL);
	end(try(1001, -EDQUOT));
	a[2] = try(1002, 0);
	CHECK(*domain != first);
	a[3] = try(1003, 0);
	no = try(1004, -EUSERS);
	end(no);
	end(a[0]);
	/* Its place is free again as soon as the kernel has let go of its slots. */
	WAIT_FOR((no = try_once(1001), end(no), !*answer));
	end(a[1]);
	end(a[2]);
	end(a[3]);
	monitor_stop(&m);
	return 0;
}
