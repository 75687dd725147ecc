/* SPDX-License-Identifier: MIT */
/*
 * Priority protection: the owner has the ceiling's priority; a thread above it is refused; ceilings
 * change.
 */
#include "../tools/check.h"
#include <sched.h>

static pthread_mutex_t m[2];

static int priority(void)
{
	struct sched_param param;

	CHECK_EQ(sched_getparam(0, &param), 0);
	return param.sched_priority;
}

static void make(int i, int type, int ceiling)
{
	pthread_mutexattr_t a;
	int got;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT), 0);
	CHECK_EQ(pthread_mutexattr_setprioceiling(&a, 1000), EINVAL);
	CHECK_EQ(pthread_mutexattr_setprioceiling(&a, ceiling), 0);
	CHECK_EQ(pthread_mutex_init(&m[i], &a), 0);
	CHECK_EQ(pthread_mutex_getprioceiling(&m[i], &got), 0);
	CHECK_EQ(got, ceiling);
}

static void owner_is_raised(void)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000000);

	CHECK_EQ(priority(), 5);
	lock(&m[0]);
	CHECK_EQ(priority(), 20);
	CHECK_EQ(pthread_mutex_timedlock(&m[1], &ts), 0);
	CHECK_EQ(priority(), 30);
	CHECK_EQ(try_elsewhere(&m[1]), EBUSY);
	unlock(&m[1]);
	CHECK_EQ(priority(), 20);
	CHECK_EQ(pthread_mutex_trylock(&m[1]), 0);
	unlock(&m[1]);
	unlock(&m[0]);
	CHECK_EQ(priority(), 5);
}

static void ceiling_changes(void)
{
	int old = -1, got = -1;

	CHECK_EQ(pthread_mutex_setprioceiling(&m[0], 1000, &old), EINVAL);
	CHECK_EQ(pthread_mutex_setprioceiling(&m[0], 25, &old), 0);
	CHECK_EQ(old, 20);
	CHECK_EQ(pthread_mutex_getprioceiling(&m[0], &got), 0);
	CHECK_EQ(got, 25);
	lock(&m[0]);
	CHECK_EQ(priority(), 25);
	unlock(&m[0]);
	/* Below the priority of who asks for it: refused, by all three. */
	CHECK_EQ(pthread_mutex_setprioceiling(&m[0], 3, &old), 0);
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);

	CHECK_EQ(pthread_mutex_lock(&m[0]), EINVAL);
	CHECK_EQ(pthread_mutex_trylock(&m[0]), EINVAL);
	CHECK_EQ(pthread_mutex_timedlock(&m[0], &ts), EINVAL);
	CHECK_EQ(priority(), 5);
}

static void types(void)
{
	make(0, PTHREAD_MUTEX_RECURSIVE, 20);
	lock(&m[0]);
	lock(&m[0]);
	unlock(&m[0]);
	CHECK_EQ(priority(), 20);
	unlock(&m[0]);
	CHECK_EQ(pthread_mutex_unlock(&m[0]), EPERM);
	make(0, PTHREAD_MUTEX_ERRORCHECK, 20);
	lock(&m[0]);
	CHECK_EQ(pthread_mutex_lock(&m[0]), EDEADLK);
	unlock(&m[0]);
	CHECK_EQ(priority(), 5);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 20);
	make(0, PTHREAD_MUTEX_NORMAL, 20);
	make(1, PTHREAD_MUTEX_NORMAL, 30);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO,
				  &(struct sched_param){.sched_priority = 5}))
		check_skip("no right to a real-time policy");
	owner_is_raised();
	ceiling_changes();
	types();
	return 0;
}
