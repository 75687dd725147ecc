// SPDX-License-Identifier: MIT
/*
 * Cases 5 and 6: processes that die by SIGKILL or SIGSEGV in a critical section,
 * running or preempted, leave no count behind.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "harness.h"

enum { CHILDREN = 32 };

static struct monitor m;
static int cpu;
static uint32_t *ready;

static void hold(void *arg)
{
	struct rlimit no_core = {0, 0};
	bool crash = arg;
	struct client c;
	struct actor a;

	setrlimit(RLIMIT_CORE, &no_core);
	client_join(&c, m.name, 8);
	bind_thread(&c, 2);
	a.client = &c;
	a.slot = 2;
	pin(0, cpu);
	actor_acquire(&a);
	/* The word is gone with the memory when the last switch comes; this is not. */
	c.slots[2].cs = 1;
	__atomic_store_n(ready, getpid(), __ATOMIC_RELEASE);
	if (crash) {
		while (!__atomic_load_n(&c.slots[2].preempted, __ATOMIC_RELAXED))
			;
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	for (;;)
		;
}

int main(void)
{
	struct client c;
	struct actor hog;
	uint64_t events = 0;
	int i, status;

	test_begin();
	monitor_start(&m, NULL);
	usable_cpus(&cpu, 1);
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ready != MAP_FAILED);
	client_join(&c, m.name, 8);
	actor_start(&hog, NULL, 0, cpu, SCHED_OTHER);
	actor_tell(&hog, ACT_BUSY);
	for (i = 0; i < CHILDREN; i++) {
		bool crash = i % 4 == 3;
		pid_t pid = spawn(hold, crash ? &m : NULL);

		if (!crash) {
			WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE) == (uint32_t)pid);
			/* Some at once (most likely running), some while they are counted. */
			if (i % 4)
				WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].preempted == 1);
			kill(pid, SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == (crash ? SIGSEGV : SIGKILL));
		WAIT_FOR(all_zero(c.counters));
	}
	events = ever_preempted(c.counters);
	CHECK(events >= CHILDREN / 2);
	actor_join(&hog);
	monitor_stop(&m);
	return 0;
}
