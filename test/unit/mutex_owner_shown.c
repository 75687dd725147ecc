/* SPDX-License-Identifier: MIT */
/*
 * A recursive mutex shows what glibc takes for its owner's tid, alone and beside other locks, also
 * once a program has corrected that in a child of its own clone(2): so do Chromium and, while it
 * holds the locks of its malloc, Firefox; both end where it is not so.
 */
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../tools/check.h"

static int shown(void)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	int owner;

	lock(&m);
	lock(&m);
	unlock(&m);
	owner = m.__data.__owner;
	unlock(&m);
	CHECK_EQ(pthread_mutex_trylock(&m), 0);
	CHECK_EQ(m.__data.__owner, owner);
	unlock(&m);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
	return owner;
}

static void *look(void *arg)
{
	CHECK_EQ(shown(), syscall(SYS_gettid));
	return arg;
}

enum { OTHERS = 5 };
static pthread_mutex_t others[OTHERS];

/* Beside some that are taken before it, and released in any order. */
static void *look_beside(void *arg)
{
	for (int held = 1; held <= OTHERS; held++)
		for (int first = 0; first < held; first++) {
			for (int i = 0; i < held; i++)
				lock(&others[i]);
			CHECK_EQ(shown(), syscall(SYS_gettid));
			for (int i = 0; i < held; i++)
				unlock(&others[(first + i) % held]);
			CHECK_EQ(shown(), syscall(SYS_gettid));
		}
	return arg;
}

/* Several locks, in any order of release: theirs are not disturbed by what is shown. */
static void beside_others(void)
{
	pthread_mutex_t m[4];

	for (int i = 0; i < 4; i++)
		m[i] = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	for (int order = 0; order < 256; order++) {
		int first = order & 3;

		for (int i = 0; i < 4; i++)
			lock(&m[i]);
		for (int i = 0; i < 4; i++)
			unlock(&m[(first + i * (order & 4 ? 3 : 1)) % 4]);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(try_elsewhere(&m[i]), 0);
	}
}

int main(int argc, char **argv)
{
	int *place = NULL, status;
	pid_t pid;

	check_begin(argv[0], 20);
	if (prctl(PR_GET_TID_ADDRESS, &place, 0, 0, 0) || !place)
		check_skip("this kernel does not say where the tid is");
	look(NULL);
	in_thread(look, NULL);
	look_beside(NULL);
	in_thread(look_beside, NULL);
	beside_others();
	look(NULL);
	for (int i = 0; i < OTHERS; i++)
		lock(&others[i]);
	pid = check_clone();
	CHECK(pid >= 0);
	if (!pid) {
		int real = (int)syscall(SYS_gettid);

		/* as the parent's still */
		if (shown() != *place || *place == real)
			_exit(1);
		*place = real;
		_exit(shown() == real ? 0 : 2);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (int i = 0; i < OTHERS; i++)
		unlock(&others[i]);
	look(NULL);
	return 0;
}
