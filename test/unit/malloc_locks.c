/* SPDX-License-Identifier: MIT */
/*
 * The program runs on a malloc that takes locks, of ours and of glibc's, from the first allocation
 * of the process to the last.
 */
#include "../tools/check.h"
#include <gnu/libc-version.h>

enum { THREADS = 6 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn;

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed(id);

	for (int i = 0; i < 300; i++) {
		unsigned char *p[20];

		for (int j = 0; j < 20; j++) {
			size_t n = 1 + rnd_below(&rng, 200);

			p[j] = malloc(n);
			CHECK(p[j]);
			memset(p[j], id, n);
		}
		for (int j = 0; j < 20; j++) {
			CHECK_EQ(p[j][0], id);
			free(p[j]);
		}
		lock(&m);
		free(malloc(10)); /* nested */
		if (i % 30 == 0) {
			while (turn != id)
				CHECK_EQ(pthread_cond_wait(&c, &m), 0);
			turn = (turn + 1) % THREADS;
			CHECK_EQ(pthread_cond_broadcast(&c), 0);
		}
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long *calls = (long *)dlsym(RTLD_DEFAULT, "locked_malloc_calls");
	void *volatile some = malloc(1);
	/* In a program that is linked at a fixed place, for all (malloc_locks_fixed). */
	void *volatile in_program = (void *)gnu_get_libc_version;
	pthread_t t[THREADS];

	check_begin(argv[0], 20);
	free(some);
	CHECK(in_program);
	if (!calls || !*calls)
		return CHECK_SETUP;
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(work, (void *)i);
	for (int i = 0; i < 5; i++) {
		pid_t pid = check_fork(); /* the allocator has fork handlers */

		if (!pid) {
			for (int j = 0; j < 100; j++)
				free(malloc(j));
			_exit(0);
		}
		check_child(pid);
	}
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	return 0;
}
