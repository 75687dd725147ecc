// SPDX-License-Identifier: MIT
/*
 * Who hears of a preempted holder: waiters on the CPUs that it could use, of its own
 * domain.  Its affinity and its cpuset may change while it waits for a CPU.
 */
#include <fcntl.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include "harness.h"

static struct monitor m;
static struct client c;
static struct actor holder, hog;
static int cpus[2];
static char dir[128];
static const char *root;

#define GROUP "flexguard-test-domains-%d"

static uint32_t usable(int cpu)
{
	return __atomic_load_n(&c.counters->usable[c.welcome.domain][cpu >> c.counters->cpu_shift],
			       __ATOMIC_RELAXED);
}

static uint32_t queued(int cpu)
{
	return __atomic_load_n(&c.counters->queued[cpu][c.welcome.domain], __ATOMIC_RELAXED);
}

static uint32_t anywhere(void)
{
	return __atomic_load_n(&c.counters->dom[c.welcome.domain].preempted, __ATOMIC_RELAXED);
}

static void pinned_by_affinity(void)
{
	WAIT_FOR(queued(cpus[0]) == 1 && usable(cpus[0]) == 1 && usable(cpus[1]) == 0 &&
		 anywhere() == 0);
	/* It comes and goes; never is it anybody's business on the other CPU. */
	for (int i = 0; i < 200; i++) {
		CHECK(!usable(cpus[1]) && !queued(cpus[1]) && !anywhere());
		usleep(100);
	}
}

static void affinity_changes(void)
{
	pin(hog.tid, cpus[1]);
	pin(holder.tid, cpus[1]);
	WAIT_FOR(usable(cpus[1]) == 1 && queued(cpus[1]) == 1);
	WAIT_FOR(usable(cpus[0]) == 0 && queued(cpus[0]) == 0);
	pin(hog.tid, cpus[0]);
	pin(holder.tid, cpus[0]);
	WAIT_FOR(usable(cpus[0]) == 1 && usable(cpus[1]) == 0);
}

static void allow_all(pid_t tid)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	CHECK(!sched_setaffinity(tid, sizeof(set), &set));
}

/* May run anywhere, and still has no CPU: as many threads want each. */
static void unrestricted(void)
{
	static struct actor hogs[4];

	for (int i = 0; i < 4; i++) {
		actor_start(&hogs[i], NULL, 0, cpus[i % 2], SCHED_OTHER);
		actor_tell(&hogs[i], ACT_BUSY);
	}
	allow_all(holder.tid);
	WAIT_FOR(anywhere() == 1);
	WAIT_FOR(anywhere() == 1 && !usable(cpus[0]) && !usable(cpus[1]));
	for (int i = 0; i < 4; i++)
		actor_join(&hogs[i]);
}

/* A cpuset of one CPU; a test that was killed leaves an empty one behind. */
static bool make_cpuset(int cpu)
{
	static const char *const roots[] = {"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"};
	struct dirent *e;
	char number[16];
	int pid;

	snprintf(number, sizeof(number), "%d", cpu);
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		DIR *d = opendir(roots[i]);

		while (d && (e = readdir(d)))
			if (sscanf(e->d_name, GROUP, &pid) == 1 && kill(pid, 0) && errno == ESRCH)
				unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
		if (d)
			closedir(d);
		snprintf(dir, sizeof(dir), "%s/" GROUP, roots[i], getpid());
		if (mkdir(dir, 0755))
			continue;
		root = roots[i];
		write_file(dir, "cpuset.mems", "0"); /* must be set in v1 */
		if (write_file(dir, "cpuset.cpus", number))
			return true;
		rmdir(dir);
	}
	return false;
}

static void by_cpuset(void)
{
	char number[16];
	bool seen = false;

	if (!make_cpuset(cpus[0])) {
		printf("no cpuset may be made here: that part is left out\n");
		return;
	}
	/* The whole process: both kinds of hierarchy allow that. */
	snprintf(number, sizeof(number), "%d", getpid());
	if (write_file(dir, "cgroup.procs", number)) {
		uint64_t until = fg_now_ns() + DEADLINE_S * 1000000000ull;

		while (!seen && fg_now_ns() < until) {
			seen = usable(cpus[0]) == 1 && !usable(cpus[1]) && !anywhere();
			usleep(100);
		}
		write_file(root, "cgroup.procs", number);
	} else {
		printf("no process may be moved into a cpuset here: that part is left out\n");
		seen = true;
	}
	rmdir(dir);
	CHECK(seen);
}

/* A neighbour, of another user where that is possible: its holder is preempted all the time. */
static void neighbour(void *uid)
{
	struct client own;
	struct actor a, b;

	if (uid)
		CHECK(!setresuid((uintptr_t)uid, (uintptr_t)uid, (uintptr_t)uid));
	client_join(&own, m.name, 8);
	actor_start(&a, &own, 1, cpus[0], SCHED_OTHER);
	actor_start(&b, NULL, 0, cpus[0], SCHED_OTHER);
	actor_tell(&a, ACT_BUSY);
	actor_tell(&b, ACT_BUSY);
	actor_acquire(&a);
	for (;;)
		pause();
}

/* Whether counts of the neighbour reach our domain. */
static bool hears_neighbour(uintptr_t uid)
{
	uint64_t until;
	bool heard = false;
	pid_t pid = spawn(neighbour, (void *)uid);

	WAIT_FOR(__atomic_load_n(&c.counters->cpu[cpus[0]].preempted, __ATOMIC_RELAXED) == 1);
	for (until = fg_now_ns() + 300000000ull; fg_now_ns() < until && !heard; usleep(100))
		heard = queued(cpus[0]) || usable(cpus[0]) || anywhere();
	/* Of the whole machine, where the monitor counts that. */
	if (c.counters->domains_only)
		CHECK(!c.counters->dom[FG_DOMAIN_ALL].preempted);
	else
		WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].preempted);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	WAIT_FOR(all_zero(c.counters));
	return heard;
}

int main(void)
{
	struct fg_monitor_config one = {.domains = FG_DOMAINS_CPUSET, .domains_only = true};

	test_begin();
	if (usable_cpus(cpus, 2) < 2)
		skip("there is only one CPU to run on: everybody could use it");
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpus[0], SCHED_OTHER);
	actor_start(&hog, NULL, 0, cpus[0], SCHED_OTHER);
	actor_tell(&hog, ACT_BUSY);
	actor_tell(&holder, ACT_BUSY);
	WAIT_FOR(c.slots[1].bound);
	actor_acquire(&holder);

	pinned_by_affinity();
	affinity_changes();
	unrestricted();
	by_cpuset();
	actor_join(&holder);
	actor_join(&hog);
	WAIT_FOR(all_zero(c.counters));

	if (geteuid()) {
		printf("only root can be several users: that part is left out\n");
	} else {
		CHECK(!hears_neighbour(1001));
		CHECK(hears_neighbour(0));
	}
	client_leave(&c);
	monitor_stop(&m);
	if (!geteuid()) {
		monitor_start(&m, &one);
		client_join(&c, m.name, 8);
		CHECK(hears_neighbour(1001));
		monitor_stop(&m);
	}
	return 0;
}
