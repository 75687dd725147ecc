/* SPDX-License-Identifier: MIT */
/* Priority ceilings: EINVAL for a mutex without one, get and set for one with. */
#include "../tools/check.h"
#include <sched.h>

int main(int argc, char **argv)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, p;
	pthread_mutexattr_t a;
	int ceiling = -1, old = -1;

	check_begin(argv[0], 20);
	CHECK_EQ(pthread_mutex_getprioceiling(&m, &ceiling), EINVAL);
	CHECK_EQ(pthread_mutex_setprioceiling(&m, 1, &old), EINVAL);
	CHECK_EQ(pthread_mutex_consistent(&m), EINVAL);
	CHECK_EQ(try_elsewhere(&m), 0);

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT), 0);
	CHECK_EQ(pthread_mutexattr_setprioceiling(&a, 7), 0);
	CHECK_EQ(pthread_mutex_init(&p, &a), 0);
	CHECK_EQ(pthread_mutex_getprioceiling(&p, &ceiling), 0);
	CHECK_EQ(ceiling, 7);
	/* glibc serves them to threads of a real-time policy only */
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO,
				  &(struct sched_param){.sched_priority = 1}))
		check_skip("no right to a real-time policy");
	CHECK_EQ(pthread_mutex_lock(&p), 0);
	CHECK_EQ(try_elsewhere(&p), EBUSY);
	unlock(&p);
	CHECK_EQ(pthread_mutex_setprioceiling(&p, 9, &old), 0);
	CHECK_EQ(old, 7);
	CHECK_EQ(pthread_mutex_getprioceiling(&p, &ceiling), 0);
	CHECK_EQ(ceiling, 9);
	CHECK_EQ(pthread_mutex_destroy(&p), 0);
	return 0;
}
