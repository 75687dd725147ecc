// SPDX-License-Identifier: MIT
/* Case 8: a holder that is stopped by a signal, a tracer or the freezer is b, never p. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include "harness.h"

static struct monitor m;
static struct client c;
static uint32_t *ready;

static void hold(void *arg)
{
	struct client own;
	struct actor a;

	client_join(&own, m.name, 8);
	bind_thread(&own, 1);
	a.client = &own;
	a.slot = 1;
	actor_acquire(&a);
	__atomic_store_n(ready, getpid(), __ATOMIC_RELEASE);
	for (;;)
		;
}

/* b, and p stays 0 for as long as one cares to look. */
static void expect_stopped(void)
{
	int i;

	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1 &&
		 c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
	for (i = 0; i < 200; i++) {
		CHECK(c.counters->dom[FG_DOMAIN_ALL].blocked == 1 &&
		      c.counters->dom[FG_DOMAIN_ALL].preempted == 0);
		usleep(100);
	}
}

static void expect_running(void)
{
	WAIT_FOR(all_zero(c.counters));
}

#define GROUP "flexguard-test-%d"

/* A test that was killed leaves its group, and in it, frozen, what was to die with it. */
static void remove_leftovers(const char *root, const char *file, const char *thaw)
{
	DIR *d = opendir(root);
	struct dirent *e;
	char dir[384];
	int pid;

	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, GROUP, &pid) != 1 || !kill(pid, 0) || errno != ESRCH)
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", root, e->d_name);
		write_file(dir, file, thaw);
		for (int i = 0; rmdir(dir) && errno == EBUSY && i < 1000; i++)
			usleep(1000);
	}
	if (d)
		closedir(d);
}

/* cgroup v1 has a freezer of its own, v2 has it in every group. */
static void freezer(pid_t pid)
{
	static const struct {
		const char *root, *file, *freeze, *thaw;
	} kinds[] = {
	    {"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
	    {"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
	    {"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
	};
	char dir[256], number[16];
	size_t i;

	snprintf(number, sizeof(number), "%d", pid);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		remove_leftovers(kinds[i].root, kinds[i].file, kinds[i].thaw);
		snprintf(dir, sizeof(dir), "%s/" GROUP, kinds[i].root, getpid());
		if (mkdir(dir, 0755))
			continue;
		if (write_file(dir, "cgroup.procs", number) &&
		    write_file(dir, kinds[i].file, kinds[i].freeze)) {
			expect_stopped();
			CHECK(write_file(dir, kinds[i].file, kinds[i].thaw));
			expect_running();
			write_file(kinds[i].root, "cgroup.procs", number);
			rmdir(dir);
			return;
		}
		write_file(kinds[i].root, "cgroup.procs", number);
		rmdir(dir);
	}
	printf("no cgroup freezer that may be written: that part is left out\n");
}

int main(void)
{
	int status;
	pid_t pid;

	test_begin();
	monitor_start(&m, NULL);
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	client_join(&c, m.name, 8);
	pid = spawn(hold, NULL);
	WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE) == (uint32_t)pid);

	kill(pid, SIGSTOP);
	expect_stopped();
	kill(pid, SIGCONT);
	expect_running();

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL)) {
		printf("ptrace is not permitted: that part is left out\n");
	} else {
		CHECK(!ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
		CHECK(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status));
		expect_stopped();
		CHECK(!ptrace(PTRACE_CONT, pid, NULL, NULL));
		expect_running();
		CHECK(!ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
		CHECK(waitpid(pid, &status, __WALL) == pid);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
		expect_running();
	}
	freezer(pid);

	/* Killed while stopped: undone on the way out. */
	kill(pid, SIGSTOP);
	expect_stopped();
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
