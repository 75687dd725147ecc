// SPDX-License-Identifier: MIT
/*
 * Case 9: the child of a fork in a critical section has its parent's TLS and
 * pages, but is not counted, and does not take the parent's slot.  Once it has
 * said hello itself, it is.
 */
#include <sched.h>
#include <sys/mman.h>
#include "harness.h"

static struct monitor m;
static struct client c;
static uint32_t *turn;

static void child(void *arg)
{
	struct actor *a = arg;
	struct client own;
	int i;

	/* Sleeps as what looks like a holder: its pending word is still owned by id 1. */
	for (i = 0; i < 20; i++)
		usleep(1000);
	__atomic_store_n(turn, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) == 1)
		usleep(200);

	/* First, or its first switch-out after the hello would bind it to slot 1 of its own. */
	unbind_thread();
	client_join(&own, m.name, 8);
	bind_thread(&own, 5);
	a->client = &own;
	a->slot = 5;
	actor_acquire(a);
	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) == 2)
		usleep(500);
}

int main(void)
{
	struct actor a = {0};
	uint64_t before;
	pid_t pid;

	test_begin();
	monitor_start(&m, NULL);
	turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	client_join(&c, m.name, 8);
	bind_thread(&c, 1);
	a.client = &c;
	a.slot = 1;
	WAIT_FOR(c.slots[1].bound == (uint32_t)getpid());
	actor_acquire(&a);
	pid = spawn(child, &a);
	/*
	 * Busy, so that the parent itself is p, and b only by an unlucky page fault.
	 * Twenty sleeps of the child would show.
	 */
	before = ever_blocked(c.counters);
	while (!__atomic_load_n(turn, __ATOMIC_ACQUIRE)) {
		CHECK(c.slots[1].bound == (uint32_t)getpid());
		CHECK(ever_blocked(c.counters) < before + 10);
	}
	actor_release(&a);
	__atomic_store_n(turn, 2, __ATOMIC_RELEASE);
	WAIT_FOR(c.counters->dom[FG_DOMAIN_ALL].blocked == 1);
	CHECK(c.slots[1].bound == (uint32_t)getpid());
	__atomic_store_n(turn, 3, __ATOMIC_RELEASE);
	reap(pid);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
