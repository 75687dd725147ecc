/* SPDX-License-Identifier: MIT */
/* Plain contention: as many threads as make the lock change hands, an exact total. */
#include "../tools/check.h"

enum { ROUNDS = 30000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (int n = 1; n <= 16; n *= 4) {
		pthread_t t[16];

		count = 0;
		for (int i = 0; i < n; i++)
			t[i] = start(work, NULL);
		for (int i = 0; i < n; i++)
			join(t[i]);
		CHECK_EQ(count, (long)n * ROUNDS);
	}
	return 0;
}
