// SPDX-License-Identifier: MIT
/*
 * Quotas: one user's processes do not use up the places of the others, nor the monitor's
 * descriptors, a place is given back when a process dies, and slots are granted up to the limit.
 * Users have domains of their own.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "harness.h"
#include "monitor/internal.h"

static struct monitor m;
static int32_t *answer;
static uint32_t *domain, *granted, want = 100000;

static struct fg_monitor_config told = {.secret = "thirty-two bytes, as run has them"};

static void join(void *uid)
{
	struct fg_told_hello hello = {
	    .hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, want, 0, tls_offset()}};
	struct fg_welcome welcome = {0};
	int sock, fds[2];

	if (uid) {
		CHECK(!setresuid((uintptr_t)uid, (uintptr_t)uid, (uintptr_t)uid));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	sock = client_connect(m.name);
	CHECK(sock >= 0);
	memcpy(hello.secret, told.secret, FG_SECRET);
	CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds));
	*granted = welcome.slots;
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

/* Of all processes of a user together; the last one gets what is left. */
static void slots_of_user(struct fg_monitor_config cfg)
{
	pid_t a[3];

	monitor_start(&m, &cfg);
	want = 64;
	a[0] = try(1001, 0);
	CHECK(*granted == 64);
	a[1] = try(1001, 0);
	CHECK(*granted == 32);
	end(try(1001, -EDQUOT));
	a[2] = try(1002, 0);
	CHECK(*granted == 64);
	end(a[0]);
	end(a[1]);
	end(a[2]);
	monitor_stop(&m);
}

/* What the monitor remembers of a slot is paid for, too. */
static void memory_of_user(void)
{
	struct fg_monitor_config cfg = {.max_memory_per_uid = 4096 + 96 * 128};

	monitor_start(&m, &cfg);
	want = 96;
	end(try(1001, 0));
	CHECK(*granted == 64);
	monitor_stop(&m);
}

/* A user's silent connections push out their own, not another user's. */
static void stay_silent(void *uid)
{
	CHECK(!setresuid(1001, 1001, 1001));
	for (int i = 0; i < 300; i++)
		CHECK(client_connect(m.name) >= 0);
	for (;;)
		pause();
}

static void connections_of_user(void)
{
	struct fg_monitor_config cfg = {.max_connections_per_uid = 4};
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	struct fg_welcome welcome;
	int sock, fds[2];
	pid_t pid;

	monitor_start(&m, &cfg);
	for (int i = 0; i < 5; i++) {
		sock = client_connect(m.name);
		CHECK(sock >= 0);
		pid = spawn(stay_silent, NULL);
		usleep(20000);
		CHECK(!client_exchange(sock, &hello, sizeof(hello), &welcome, fds) &&
		      !welcome.error);
		close(sock);
		close(fds[0]);
		close(fds[1]);
		end(pid);
	}
	monitor_stop(&m);
}

static void have_few_descriptors(void)
{
	const struct rlimit few = {136, 136};

	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
}

/* As many processes as a user may have with these descriptors. */
static int take_all(pid_t pid[128])
{
	int n = 0;

	do {
		CHECK(n < 128);
		pid[n] = try_once(1001);
	} while (n++, !*answer);
	CHECK(*answer == -EDQUOT && n > 4);
	return n;
}

/* A user takes all that there are to get; the next one still gets some. */
static void descriptors_of_user(void)
{
	pid_t pid[128], next[2];
	int n, of_program;

	monitor_prepare = have_few_descriptors;
	monitor_start(&m, NULL);
	n = take_all(pid);
	for (int i = 0; i < 2; i++)
		next[i] = try(1002, 0);
	for (int i = 0; i < 2; i++)
		end(next[i]);
	for (int i = 0; i < n; i++)
		end(pid[i]);
	WAIT_FOR((pid[0] = try_once(1001), end(pid[0]), !*answer));
	monitor_stop(&m);
	/* The monitor of one program has nobody to keep a part for. */
	monitor_start(&m, &told);
	of_program = take_all(pid);
	if (of_program < 2 * n)
		fail("%d of a program's processes, %d of a user's", of_program - 1, n - 1);
	for (int i = 0; i < of_program; i++)
		end(pid[i]);
	monitor_stop(&m);
}

/* As many hellos as are taken, of a process whose threads take the monitor two turns each. */
#define MANY_THREADS (FG_PROVE_AT_ONCE + 100)

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *say_hello_again_and_again(void *arg)
{
	struct fg_hello hello = {FG_PROTO_MAGIC, FG_ABI_VERSION, 8, 0, tls_offset()};
	int socks[512] = {0};

	/* To change anything makes new credentials, of this thread, which is the last one. */
	CHECK(!syscall(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0));
	for (unsigned i = 0;; i = (i + 1) % 512) {
		if (socks[i] > 0)
			close(socks[i]);
		socks[i] = client_connect(m.name);
		if (socks[i] > 0)
			(void)!send(socks[i], &hello, sizeof(hello), MSG_NOSIGNAL);
		if (i == 511)
			__atomic_store_n(answer, 0, __ATOMIC_RELEASE);
	}
	return arg;
}

static void flood(void *arg)
{
	pthread_attr_t small;
	pthread_t t;

	(void)arg;
	CHECK(!setresuid(1001, 1001, 1001));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (unsigned i = 0; i < MANY_THREADS; i++)
		if (pthread_create(&t, &small, wait_for_ever, NULL))
			_exit(77);
	CHECK(!pthread_create(&t, &small, say_hello_again_and_again, NULL));
	pthread_join(t, NULL);
}

/* Nor does a user have them all for hellos that are not answered yet. */
static void descriptors_of_hellos(void)
{
	pid_t pid;

	monitor_start(&m, NULL);
	*answer = 1;
	pid = spawn(flood, NULL);
	WAIT_FOR(!__atomic_load_n(answer, __ATOMIC_ACQUIRE) || waitpid(pid, NULL, WNOHANG));
	if (*answer)
		skip("fewer than %u threads may be made here", MANY_THREADS);
	for (int i = 0; i < 20; i++)
		end(try(1002, 0));
	end(pid);
	monitor_stop(&m);
}

int main(void)
{
	struct fg_monitor_config cfg = {.max_processes = 4, .max_per_uid = 2, .max_slots = 96};
	pid_t a[4], no;
	uint32_t first;

	test_begin();
	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	domain = (uint32_t *)answer + 1;
	granted = domain + 1;
	if (geteuid())
		skip("only root can be several users");
	monitor_start(&m, &cfg);
	a[0] = try(1001, 0);
	CHECK(*granted == 96);
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
	slots_of_user((struct fg_monitor_config){.max_slots_per_uid = 96 + 20});
	/*
	 * A slot costs its 128 bytes in the kernel, and 28 in the monitor, which remembers its
	 * counts.
	 */
	slots_of_user((struct fg_monitor_config){.max_memory_per_uid = 2 * 4096 + 96 * (128 + 28)});
	memory_of_user();
	connections_of_user();
	descriptors_of_user();
	descriptors_of_hellos();
	return 0;
}
