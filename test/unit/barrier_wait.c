/* SPDX-License-Identifier: MIT */
/*
 * All participants of a round come through together, one of them as the serial thread; rounds
 * follow each other at once.
 */
#include "../tools/check.h"

enum { ROUNDS = 3000, MAX = 9 };

static pthread_barrier_t barrier;
static int arrived[MAX], serial, count;

static void *participate(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int round = 1; round <= ROUNDS / count; round++) {
		int r;

		STORE(arrived[me], round);
		r = pthread_barrier_wait(&barrier);
		for (int i = 0; i < count; i++)
			CHECK(LOAD(arrived[i]) == round || LOAD(arrived[i]) == round + 1);
		if (r == PTHREAD_BARRIER_SERIAL_THREAD)
			ADD(serial, 1);
		else
			CHECK_EQ(r, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[MAX];

	(void)argc;
	check_begin(argv[0], 60);
	for (count = 1; count <= MAX; count += 2) {
		memset(arrived, 0, sizeof(arrived));
		serial = 0;
		CHECK_EQ(pthread_barrier_init(&barrier, NULL, (unsigned)count), 0);
		for (int i = 0; i < count; i++)
			t[i] = start(participate, (void *)(intptr_t)i);
		for (int i = 0; i < count; i++)
			join(t[i]);
		CHECK_EQ(serial, ROUNDS / count);
		CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
	}
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 0x7fffffff), EINVAL);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 0x7ffffffe), 0);
	CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
	return 0;
}
