/* SPDX-License-Identifier: MIT */
/*
 * A mutex that nobody holds is unlocked: undefined in POSIX for a normal one, nothing happens in
 * glibc, and programs that do it live there.  It is as good as before, alone and with a second
 * thread.
 */
#include "../tools/check.h"

enum { ROUNDS = 1000 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		lock(&m);
		sum++;
		unlock(&m);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	check_begin(argv[0], 30);
	CHECK_EQ(pthread_mutex_unlock(&m), 0); /* never locked */
	add(NULL);
	CHECK_EQ(pthread_mutex_unlock(&m), 0); /* not any more */
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(try_elsewhere(&m), 0);
	t = start(add, NULL);
	add(NULL);
	join(t);
	CHECK_EQ(sum, 3 * ROUNDS);
	return 0;
}
