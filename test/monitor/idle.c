// SPDX-License-Identifier: MIT
/*
 * A monitor that nobody is registered at is in no switch's way: some time after the last process
 * has gone its programs are on no tracepoint any more.  The next process finds them there, and they
 * count as before.
 */
#include <dirent.h>
#include "harness.h"

/* Programs that it has on tracepoints; its descriptors tell. */
static int hooks(pid_t monitor)
{
	char folder[32], line[128];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(folder, sizeof(folder), "/proc/%d/fdinfo", monitor);
	d = opendir(folder);
	CHECK(d);
	while ((e = readdir(d))) {
		char path[sizeof(folder) + sizeof(e->d_name) + 1];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			n += !strncmp(line, "tp_name:", strlen("tp_name:"));
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

static bool are_gone(pid_t monitor)
{
	usleep(50000);
	return !hooks(monitor);
}

static void work(void *name)
{
	struct actor a;
	struct client c;

	client_join(&c, name, 8);
	actor_start(&a, &c, 3, -1, SCHED_OTHER);
	actor_get_up(&a);
	actor_acquire(&a);
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[c.welcome.domain].blocked == 1 &&
		 actor_slot(&a)->state == FG_STATE_SLEEP);
	actor_tell(&a, ACT_BUSY);
	WAIT_FOR(actor_slot(&a)->state == FG_STATE_ON);
	WAIT_FOR(all_zero(c.counters));
	/* and one that dies asleep with its lock */
	actor_lie_down(&a);
	WAIT_FOR(c.counters->dom[c.welcome.domain].blocked == 1);
}

int main(void)
{
	struct monitor m;
	int all;

	test_begin();
	monitor_start(&m, NULL);
	all = hooks(m.pid);
	CHECK(all >= 5);
	for (int i = 0; i < 2; i++) {
		WAIT_FOR(are_gone(m.pid));
		reap(spawn(work, m.name));
		CHECK(hooks(m.pid) == all);
		WAIT_FOR(monitor_report(m.name).processes == 0);
	}
	monitor_stop(&m);
	return 0;
}
