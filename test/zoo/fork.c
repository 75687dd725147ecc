/* SPDX-License-Identifier: MIT */
/*
 * fork() by the owner of a mutex for which another thread waits: the child's copy has a waiter that
 * does not exist there, and is locked, unlocked and locked again all the same.  Two threads at
 * most: for locks that stand no more.  Nor does a child have more descriptors than its parent had
 * for it: the waiter may just have opened a file or three, to look for a monitor or at the clock.
 */
#include "../tools/check.h"
#include <fcntl.h>
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

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void in_the_child(int of_parent)
{
	int inherited = descriptors();

	CHECK(inherited <= of_parent + 3);
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
	CHECK(descriptors() <= (inherited > of_parent ? inherited : of_parent));
}

static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void *find_it_held(void *arg)
{
	CHECK_EQ(pthread_mutex_trylock(&again), EBUSY);
	return arg;
}

/* The first that comes to them in the child is not the thread that has them. */
static void others_come_first(void)
{
	pthread_t t;
	int status;
	pid_t child;

	STORE(waits, 0);
	lock(&m);
	lock(&again);
	lock(&again);
	child = fork();
	if (!child) {
		join(start(find_it_held, NULL));
		pthread_mutex_unlock(&again); /* once of twice; EPERM, as with glibc's own */
		join(start(find_it_held, NULL));
		t = start(wait_for_it, NULL);
		UNTIL(LOAD(waits));
		usleep(1000);
		unlock(&m);
		join(t);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	unlock(&again);
	unlock(&again);
	unlock(&m);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 60);
	others_come_first();
	for (int i = 0; i < 50; i++) {
		pthread_t t;
		int status, of_parent;
		pid_t child;

		STORE(waits, 0);
		got = 0;
		lock(&m);
		t = start(wait_for_it, NULL);
		UNTIL(LOAD(waits));
		usleep(1000); /* it is in the queue, most of the time */
		of_parent = descriptors();
		child = fork();
		if (!child) {
			in_the_child(of_parent);
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
