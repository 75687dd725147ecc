// SPDX-License-Identifier: MIT
/*
 * A slot that changes hands: the new thread is bound to it at its first switch-out, the old one
 * reads its TLS again and gets its own new slot, or none. As in the library, the old one lets go
 * first: one whose TLS still names the slot takes it back at its next switch-out, and a new one
 * that sleeps by then has no switch-out left to be bound at.
 */
#include <sched.h>
#include "harness.h"

static struct client c;
static uint32_t step;

static void *move(void *arg)
{
	bind_thread(&c, 1);
	WAIT_FOR(c.slots[1].bound == (uint32_t)gettid());
	c.slots[1].cs = 1;
	__atomic_store_n(&step, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 1)
		usleep(200);
	bind_thread(&c, 2);
	__atomic_store_n(&step, 3, __ATOMIC_RELEASE);
	/* Its slot is somebody else's soon.  It does not bind to it again, and is not counted. */
	WAIT_FOR(c.slots[2].bound == (uint32_t)gettid());
	c.slots[2].cs = 1;
	while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 4)
		usleep(200);
	return NULL;
}

int main(void)
{
	struct monitor m;
	struct actor a;
	pthread_t mover;

	test_begin();
	monitor_start(&m, NULL);
	client_join(&c, m.name, 8);
	CHECK(!pthread_create(&mover, NULL, move, NULL));
	WAIT_FOR(__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 1);

	__atomic_store_n(&step, 2, __ATOMIC_RELEASE);
	WAIT_FOR(__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 3);
	/*
	 * The process hands slot 1 to another thread: so it clears it, as it would at any hand-out.
	 */
	c.slots[1].cs = 0;
	actor_start(&a, &c, 1, -1, SCHED_OTHER);
	WAIT_FOR(c.slots[1].bound == (uint32_t)a.tid);
	WAIT_FOR(c.slots[1].state == FG_STATE_SLEEP);
	WAIT_FOR(c.slots[2].blocked > 3);
	CHECK(all_sane(c.counters, 1));
	__atomic_store_n(&step, 4, __ATOMIC_RELEASE);
	CHECK(!pthread_join(mover, NULL));
	WAIT_FOR(c.slots[2].state == FG_STATE_DEAD);
	CHECK(c.slots[1].state == FG_STATE_SLEEP);
	actor_join(&a);
	WAIT_FOR(all_zero(c.counters));
	monitor_stop(&m);
	return 0;
}
