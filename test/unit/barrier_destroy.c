/* SPDX-License-Identifier: MIT */
/*
 * Any participant may destroy a barrier, and give its memory away, as soon as its own wait has
 * returned.
 */
#include "../tools/check.h"

#include <sys/mman.h>

enum { THREADS = 4, ROUNDS = 400 };

static pthread_barrier_t *barrier;
static pthread_barrier_t begin, end;

static void *participate(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_t *b;

		pthread_barrier_wait(&begin);
		b = LOAD(barrier);
		if (pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD) {
			CHECK_EQ(pthread_barrier_destroy(b), 0);
			CHECK_EQ(munmap(b, 4096), 0);
		}
		pthread_barrier_wait(&end);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	(void)argc;
	check_begin(argv[0], 60);
	CHECK_EQ(pthread_barrier_init(&begin, NULL, THREADS + 1), 0);
	CHECK_EQ(pthread_barrier_init(&end, NULL, THREADS + 1), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(participate, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_t *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(b != MAP_FAILED);
		memset(b, 0xa5, 4096);
		CHECK_EQ(pthread_barrier_init(b, NULL, THREADS), 0);
		STORE(barrier, b);
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	}
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(pthread_barrier_destroy(&begin), 0);
	CHECK_EQ(pthread_barrier_destroy(&end), 0);
	return 0;
}
