// SPDX-License-Identifier: MIT
/*
 * A hundred processes with critical threads that are killed, exit, or exec,
 * at any moment.  Afterwards every count is 0, and the monitor still has room.
 */
#include <sched.h>
#include <signal.h>
#include "harness.h"

enum { PROCESSES = 96, AT_ONCE = 8, THREADS = 4 };

static struct monitor m;

static void live(void *arg)
{
	static struct actor a[THREADS];
	uintptr_t how = (uintptr_t)arg;
	struct client c;
	int i;

	client_join(&c, m.name, 8);
	for (i = 0; i < THREADS; i++) {
		actor_start(&a[i], &c, i + 1, -1, SCHED_OTHER);
		actor_acquire(&a[i]);
		actor_tell(&a[i], i % 4);
	}
	switch (how % 4) {
	case 0: _exit(0);
	case 1: execl("/bin/true", "true", NULL); _exit(0);
	default: /* its parent kills it */
		for (;;)
			pause();
	}
}

int main(void)
{
	/* Fewer places than processes: they have to be given back. */
	struct fg_monitor_config cfg = {.max_processes = 64};
	pid_t pid[AT_ONCE];
	struct client c;
	int i, k;

	test_begin();
	monitor_start(&m, &cfg);
	client_join(&c, m.name, 8);
	for (i = 0; i < PROCESSES; i += AT_ONCE) {
		for (k = 0; k < AT_ONCE; k++)
			pid[k] = spawn(live, (void *)(uintptr_t)k);
		usleep(500 * (i % 16));
		for (k = 0; k < AT_ONCE; k++)
			if (k % 4 > 1)
				kill(pid[k], SIGKILL);
		for (k = 0; k < AT_ONCE; k++) {
			int status;

			CHECK(waitpid(pid[k], &status, 0) == pid[k]);
			CHECK(k % 4 > 1 ? WIFSIGNALED(status) : !status);
		}
		CHECK(all_sane(c.counters, AT_ONCE * THREADS));
	}
	WAIT_FOR(all_zero(c.counters));
	CHECK(ever_blocked(c.counters) + ever_preempted(c.counters) > 0);
	monitor_stop(&m);
	return 0;
}
