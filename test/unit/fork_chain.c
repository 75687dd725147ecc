/* SPDX-License-Identifier: MIT */
/* A child forks a child that forks a child, each with contended locks before and after. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count;

static void *work(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		lock(&m);
		*(volatile long *)&count += 1;
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	for (int depth = 1; depth <= 8; depth++) {
		pthread_t t[3];
		pid_t pid;

		for (int i = 0; i < 3; i++)
			t[i] = start(work, NULL);
		for (int i = 0; i < 3; i++)
			join(t[i]);
		CHECK_EQ(count, 6000 * depth);
		pid = check_fork();
		if (pid) {
			check_child(pid);
			return 0;
		}
	}
	return 0;
}
