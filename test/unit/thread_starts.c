/* SPDX-License-Identifier: MIT */
/*
 * Threads that begin at once: no two have one index, and those that come after they have ended get
 * the same indices again, each in its turn.
 */
#include "../tools/check.h"

#include "runtime/thread.h"

enum { THREADS = 96, ROUNDS = 40 };

static int begun, go;
static uint32_t has[FG_PIECE]; /* threads with that index */

static void *begin(void *arg)
{
	uint32_t index;

	ADD(begun, 1);
	while (!LOAD(go))
		sched_yield();
	index = fg_id_index(fg_self()->id);
	CHECK(index > 0 && index < FG_PIECE && index <= fg_threads_highest());
	CHECK_EQ(ADD(has[index], 1), 1);
	while (LOAD(go) < 2) /* all have theirs at the same time */
		sleep_us(100);
	return arg;
}

static uint32_t in_use(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FG_PIECE; i++)
		n += LOAD(has[i]);
	return n;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	(void)argc;
	check_begin(argv[0], 60);
	fg_self();
	for (int round = 0; round < ROUNDS; round++) {
		int threads = round % 2 ? THREADS : THREADS / 2;

		STORE(begun, 0);
		STORE(go, 0);
		for (int i = 0; i < threads; i++)
			t[i] = start(begin, NULL);
		UNTIL(LOAD(begun) == threads);
		STORE(go, 1);
		UNTIL(in_use() == (uint32_t)threads);
		STORE(go, 2);
		for (int i = 0; i < threads; i++)
			join(t[i]);
		memset(has, 0, sizeof(has));
	}
	/* and this thread's */
	CHECK(fg_threads_highest() <= THREADS + 1);
	return 0;
}
