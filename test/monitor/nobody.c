// SPDX-License-Identifier: MIT
/*
 * The monitor needs no root: uid nobody with CAP_BPF and CAP_PERFMON serves
 * clients of another user.  With only one of the two it says which one is missing.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "harness.h"

#define NOBODY 65534

static void become_nobody(uint64_t caps)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {
	    {.effective = caps, .permitted = caps},
	    {.effective = caps >> 32, .permitted = caps >> 32},
	};

	CHECK(!prctl(PR_SET_KEEPCAPS, 1));
	CHECK(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	CHECK(!syscall(SYS_capset, &head, data));
	/* A change of uid forgets it. */
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
}

static void drop(void)
{
	become_nobody(1ull << CAP_BPF | 1ull << CAP_PERFMON);
}

static void without(void *missing)
{
	uint64_t caps = 1ull << CAP_BPF | 1ull << CAP_PERFMON;
	char why[256] = "";
	struct fg_monitor *m;
	int err;

	if (!strcmp(missing, "CAP_BPF"))
		caps &= ~(1ull << CAP_BPF);
	else
		caps &= ~(1ull << CAP_PERFMON);
	become_nobody(caps);
	err = fg_monitor_open(&m, NULL, why, sizeof(why));
	CHECK(err == -EPERM && !m);
	CHECK(strstr(why, missing) && !strchr(why, '\n'));
	CHECK(!strstr(why, " and "));
}

int main(void)
{
	struct monitor m;
	struct client c;
	struct actor a;

	test_begin();
	if (geteuid())
		skip("only root can become nobody with two capabilities");
	fg_monitor_close(monitor_open_or_skip(NULL));
	reap(spawn(without, "CAP_BPF"));
	reap(spawn(without, "CAP_PERFMON"));

	monitor_prepare = drop;
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	actor_acquire(&a);
	actor_tell(&a, ACT_SLEEP);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
