/* SPDX-License-Identifier: MIT */
/* A condition variable that others waited on at the fork can be used in the child. */
#include "../tools/check.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *wait_for_go(void *arg)
{
	lock(&m);
	waiting++;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	waiting--;
	unlock(&m);
	return NULL;
}

static void wait_for(int n)
{
	for (int there = 0; !there;) {
		lock(&m);
		there = waiting == n;
		unlock(&m);
		sleep_us(20);
	}
}

static void release(pthread_t *t, int n)
{
	lock(&m);
	go = 1;
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	unlock(&m);
	for (int i = 0; i < n; i++)
		join(t[i]);
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	check_begin(argv[0], 20);
	for (int i = 0; i < 4; i++)
		t[i] = start(wait_for_go, NULL);
	wait_for(4);
	for (int i = 0; i < 10; i++) {
		pid_t pid;

		lock(&m);
		pid = check_fork();
		if (!pid) {
			pthread_t u[2];

			/*
			 * The waiters of the parent do not exist here.  What POSIX leaves to
			 * re-initialise is re-initialised in every other child; the rest takes it
			 * as it is.
			 */
			if (i & 1)
				CHECK_EQ(pthread_cond_init(&c, NULL), 0);
			waiting = 0;
			unlock(&m);
			for (int j = 0; j < 2; j++)
				u[j] = start(wait_for_go, NULL);
			wait_for(2);
			release(u, 2);
			_exit(0);
		}
		unlock(&m);
		check_child(pid);
	}
	release(t, 4);
	return 0;
}
