// SPDX-License-Identifier: MIT
/*
 * Case 12: a holder whose cgroup has used up its CPU quota waits for time, not
 * for a CPU: b, where the kernel says so (task_struct.throttled, since 6.18).
 */
#include <fcntl.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <bpf/btf.h>
#include "harness.h"

static char dir[128];
static const char *root;

#define GROUP "flexguard-test-throttle-%d"

/*
 * A test that was killed leaves its group, which is empty then: the process was all that it held.
 */
static void remove_leftovers(void)
{
	DIR *d = opendir(root);
	struct dirent *e;
	int pid;

	while (d && (e = readdir(d)))
		if (sscanf(e->d_name, GROUP, &pid) == 1 && kill(pid, 0) && errno == ESRCH)
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
}

static bool make_group(void)
{
	root = "/sys/fs/cgroup/cpu";
	remove_leftovers();
	snprintf(dir, sizeof(dir), "%s/" GROUP, root, getpid());
	if (!mkdir(dir, 0755)) {
		if (write_file(dir, "cpu.cfs_period_us", "50000") &&
		    write_file(dir, "cpu.cfs_quota_us", "5000"))
			return true;
		rmdir(dir);
	}
	root = "/sys/fs/cgroup";
	remove_leftovers();
	snprintf(dir, sizeof(dir), "%s/" GROUP, root, getpid());
	if (!mkdir(dir, 0755)) {
		if (write_file(dir, "cpu.max", "5000 50000"))
			return true;
		rmdir(dir);
	}
	return false;
}

static bool kernel_tells(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	bool found = false;
	int id, i;

	CHECK(btf);
	id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	CHECK(id > 0);
	t = btf__type_by_id(btf, id);
	for (i = 0; i < btf_vlen(t); i++)
		found |= !strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), "throttled");
	btf__free(btf);
	return found;
}

int main(void)
{
	struct actor a;
	struct monitor m;
	struct client c;
	char number[16];
	int moved;

	test_begin();
	monitor_start(&m, NULL);
	if (!kernel_tells())
		skip(
		    "this kernel does not tell throttled threads from preempted ones (it can since 6.18)");
	if (!make_group())
		skip("no cgroup with a CPU quota may be made here");
	client_join(&c, m.name, 8);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	actor_tell(&a, ACT_BUSY);
	actor_acquire(&a);
	/* The whole process: both kinds of hierarchy allow that, and this thread only polls. */
	snprintf(number, sizeof(number), "%d", getpid());
	moved = write_file(dir, "cgroup.procs", number);
	if (moved) {
		uint64_t until = fg_now_ns() + DEADLINE_S * 1000000000ull;

		while (actor_slot(&a)->blocked < 3 && fg_now_ns() < until)
			usleep(1000);
		write_file(root, "cgroup.procs", number);
	}
	actor_release(&a);
	actor_join(&a);
	rmdir(dir);
	if (!moved)
		skip("no process may be moved into a cgroup with a CPU quota here");
	CHECK(actor_slot(&a)->blocked >= 3);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
