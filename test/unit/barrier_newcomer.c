/* SPDX-License-Identifier: MIT */
/*
 * More threads use a barrier than a round has participants: one of the next round arrives after
 * each instruction in turn of the last one of this.  It waits for its own partner.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
enum { POSITIONS = 300 };

static pthread_barrier_t barrier;
static int turn, position, told;

static void take_part(void)
{
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		ADD(told, 1);
}

static void *first(void *arg)
{
	take_part();
	return arg;
}

static void *of_next_round(void *arg)
{
	UNTIL(LOAD(turn));
	take_part();
	return arg;
}

/* Waits for ever if the newcomer has gone without it. */
static void *partner(void *arg)
{
	UNTIL(LOAD(turn));
	sleep_us(1000);
	take_part();
	return arg;
}

static void newcomer(void)
{
	if (step_count != position)
		return;
	STORE(turn, 1);
	sleep_us(500); /* most likely it has arrived then */
	step_ending = 1;
}

int main(int argc, char **argv)
{
	pthread_t a, b, c;

	(void)argc;
	check_begin(argv[0], 30);
	for (position = 1; position <= POSITIONS; position++) {
		turn = told = 0;
		CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
		a = start(first, NULL);
		b = start(of_next_round, NULL);
		c = start(partner, NULL);
		sleep_us(200); /* most likely the first waits then */
		step_begin(newcomer);
		take_part();
		step_end();
		STORE(turn, 1);
		join(a);
		join(b);
		join(c);
		CHECK_EQ(told, 2);
		CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
		if (step_count < position)
			break; /* it has not so many */
	}
	return 0;
}
#endif
