// SPDX-License-Identifier: MIT
/*
 * Case 14: a holder that makes room for a kernel thread and comes straight back
 * is not counted.  Reading /proc/sys/vm/stat_refresh makes a kernel thread run
 * on every CPU.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include "harness.h"
#include "monitor/internal.h"

int main(void)
{
	struct actor holder, hog;
	struct monitor m;
	struct client c;
	struct fg_slot *slot;
	uint64_t involuntary, preempted;
	struct utsname u;
	int cpus[2], fd;

	test_begin();
	uname(&u);
	if (!fg_release_is(u.release, 6, 4))
		skip("before Linux 6.4 nothing is deferred (EARLY_STORAGE in monitor.bpf.c)");
	monitor_start(&m, NULL);
	usable_cpus(cpus, 2);
	fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		skip(
		    "/proc/sys/vm/stat_refresh cannot be written: no way to make a kernel thread run");
	client_join(&c, m.name, 8);
	actor_start(&holder, &c, 1, cpus[0], SCHED_OTHER);
	slot = actor_slot(&holder);
	actor_tell(&holder, ACT_BUSY);
	WAIT_FOR(slot->bound && slot->state == FG_STATE_ON);
	involuntary = slot->involuntary;
	preempted = slot->preempted;
	actor_acquire(&holder);
	/*
	 * Always critical: each switch-out that is not in `preempted` was deferred and taken back.
	 */
	WAIT_FOR((write(fd, "1", 1),
		  slot->involuntary - involuntary >= slot->preempted - preempted + 20));
	CHECK(all_sane(c.counters, 1));

	/* And one that does not come back is counted all the same. */
	actor_start(&hog, NULL, 0, cpus[0], SCHED_OTHER);
	actor_tell(&hog, ACT_BUSY);
	preempted = slot->preempted;
	WAIT_FOR((write(fd, "1", 1), slot->preempted >= preempted + 20));
	CHECK(all_sane(c.counters, 1));
	actor_release(&holder);
	actor_join(&hog);
	actor_join(&holder);
	WAIT_FOR(all_zero(c.counters));
	CHECK(c.counters->missed == 0 || c.counters->missed < slot->involuntary);
	monitor_stop(&m);
	return 0;
}
