/* SPDX-License-Identifier: MIT */
/*
 * fork() by the owner of a mutex for which another thread waits: the child's copy has a waiter that
 * does not exist there, and is locked, unlocked and locked again all the same.  Two threads at
 * most: for locks that stand no more.
 */
#include "../tools/check.h"
#include <sys/wait.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int waits, got;

static void *wait_for_it(void *arg)
{
	(void)arg;
	STORE(waits, 1);
	lock(&m);
	got++;
	unlock(&m);
	return NULL;
}

static void in_the_child(void)
{
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	unlock(&m);
	for (int i = 0; i < 100; i++) {
		lock(&m);
		CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
		unlock(&m);
	}
	STORE(waits, 0);
	lock(&m);
	pthread_t t = start(wait_for_it, NULL);
	UNTIL(LOAD(waits));
	unlock(&m);
	join(t);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	for (int i = 0; i < 50; i++) {
		pthread_t t;
		pid_t child;
		int status;

		STORE(waits, 0);
		got = 0;
		lock(&m);
		t = start(wait_for_it, NULL);
		UNTIL(LOAD(waits));
		usleep(1000); /* it is in the queue, most of the time */
		child = fork();
		if (!child) {
			in_the_child();
			_exit(0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		unlock(&m);
		join(t);
		CHECK_EQ(got, 1);
	}
	return 0;
}
