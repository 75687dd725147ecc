/* SPDX-License-Identifier: MIT */
/*
 * A monitor is there, and sees nothing of the owner: one beyond the slots that it granted, or
 * without any.  Then its waiters judge by what they can see themselves, and do not take it for
 * running until they are tired of it.
 */
#include "../tools/check.h"

#include "runtime/decide.h"

static struct fg_counters counters;
static uint32_t id;

/* Has an index, takes no CPU time. */
static void *sleeper(void *arg)
{
	__atomic_store_n(&id, fg_self()->id, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return arg;
}

/*
 * Questions until the answer is to sleep: the fewest and the most of some tries, in which others
 * may have the CPU.
 */
static unsigned most;

static unsigned asked(uint32_t owner)
{
	unsigned least = ~0u;

	most = 0;
	for (int i = 0; i < 50; i++) {
		struct fg_wait w = {.self = fg_self(), .owner = owner};
		unsigned n = 0;

		counters.heartbeat_ns = fg_now_ns();
		while (fg_decide(&w) == FG_SPIN && n < 100000000)
			n++;
		CHECK(n < 100000000);
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	return least;
}

int main(int argc, char **argv)
{
	unsigned watched, beyond, none;
	pthread_t t;

	check_begin(argv[0], 60);
	CHECK_EQ(pthread_create(&t, NULL, sleeper, NULL), 0);
	while (!__atomic_load_n(&id, __ATOMIC_ACQUIRE))
		sleep_us(100);
	fg_policy_set(FG_POLICY_DEFAULT);
	fg_policy_monitor(&counters, 1);
	/* Its slot says nothing, so it runs: up to the longest time that anybody spins. */
	fg_slots_seen = FG_PIECE;
	asked(id);
	watched = most;
	fg_slots_seen = fg_id_index(id);
	beyond = asked(id);
	none = asked(FG_ID_NO_SLOT | 1);
	printf("questions: watched %u, beyond the slots %u, without one %u\n", watched, beyond,
	       none);
	CHECK(beyond < watched / 8 && none < watched / 8);
	return 0;
}
