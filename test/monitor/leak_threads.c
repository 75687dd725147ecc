// SPDX-License-Identifier: MIT
/*
 * Thousands of threads that are critical all their lives: they run, sleep,
 * yield, and exit as they are.  Afterwards every count is 0, and slot numbers
 * have been used many times over.
 */
#include <sched.h>
#include "harness.h"

enum { THREADS = 3200, AT_ONCE = 16 };

static struct client c;

static void *live(void *arg)
{
	uint32_t slot = (uintptr_t)arg;
	volatile int i;

	bind_thread(&c, slot);
	c.slots[slot].cs = 1;
	switch (rand() % 4) {
	case 0:
		for (i = 0; i < 20000; i++)
			;
		break;
	case 1: usleep(rand() % 200); break;
	case 2: sched_yield(); break;
	}
	usleep(100); /* long enough that it is not over before it begins, emulated */
	return NULL;
}

int main(void)
{
	pthread_t thread[AT_ONCE];
	struct monitor m;
	int i, k;

	test_begin();
	srand(1);
	monitor_start(&m, NULL);
	client_join(&c, m.name, AT_ONCE + 1);
	for (i = 0; i < THREADS / AT_ONCE; i++) {
		for (k = 0; k < AT_ONCE; k++)
			CHECK(!pthread_create(&thread[k], NULL, live, (void *)(uintptr_t)(k + 1)));
		for (k = 0; k < AT_ONCE; k++)
			CHECK(!pthread_join(thread[k], NULL));
		CHECK(all_sane(c.counters, AT_ONCE));
	}
	WAIT_FOR(all_zero(c.counters));
	/* Each of them slept at least once, critical. */
	CHECK(ever_blocked(c.counters) >= THREADS);
	monitor_stop(&m);
	return 0;
}
