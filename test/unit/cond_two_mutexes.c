/* SPDX-License-Identifier: MIT */
/* One condition variable serves first one mutex, then another, of another kind. */
#include "../tools/check.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		       pi;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *wait_with(void *m)
{
	lock(m);
	waiting = 1;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, m), 0);
	unlock(m);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutex_t *all[] = {&a, &b, &pi};
	pthread_mutexattr_t attr;

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_mutexattr_init(&attr), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(&pi, &attr), 0);
	for (int i = 0; i < 150; i++) {
		pthread_mutex_t *m = all[i % 3];
		pthread_t t[2];

		waiting = go = 0;
		for (int j = 0; j < 2; j++)
			t[j] = start(wait_with, m);
		UNTIL(LOAD(waiting));
		lock(m);
		go = 1;
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		unlock(m);
		for (int j = 0; j < 2; j++)
			join(t[j]);
	}
	return 0;
}
