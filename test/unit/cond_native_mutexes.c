/* SPDX-License-Identifier: MIT */
/*
 * Condition variables with the mutexes that stay with glibc: robust, priority-inheriting,
 * priority-protected, process-shared.
 */
#include "../tools/check.h"
#include <sched.h>

static pthread_mutex_t m;
static pthread_cond_t c;
static int waiting, go;

static void *wait_for_go(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 60000000);
	int r = 0;

	lock(&m);
	waiting = 1;
	while (!go && !r)
		r = arg ? pthread_cond_timedwait(&c, &m, &ts) : pthread_cond_wait(&c, &m);
	if (r == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&m), 0);
	unlock(&m);
	return (void *)(long)r;
}

static void *signal_and_die(void *arg)
{
	lock(&m);
	go = 1;
	CHECK_EQ(pthread_cond_signal(&c), 0);
	return NULL; /* with the mutex */
}

static pthread_t waiter(intptr_t timed)
{
	pthread_t t;

	waiting = go = 0;
	t = start(wait_for_go, (void *)timed);
	for (int there = 0; !there;) {
		lock(&m);
		there = waiting;
		unlock(&m);
		sleep_us(20);
	}
	return t;
}

int main(int argc, char **argv)
{
	int realtime;

	check_begin(argv[0], 20);
	/* glibc serves protected mutexes to threads of a real-time policy only */
	realtime = !pthread_setschedparam(pthread_self(), SCHED_FIFO,
					  &(struct sched_param){.sched_priority = 1});
	for (int i = 0; i < 40; i++) {
		enum { ROBUST, INHERIT, PROTECT, SHARED } kind = i % 4;
		pthread_mutexattr_t a;
		pthread_t t;
		struct timespec ts;

		CHECK_EQ(pthread_mutexattr_init(&a), 0);
		if (kind == ROBUST)
			CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
		if (kind == INHERIT)
			CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
		if (kind == SHARED)
			CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
		if (kind == PROTECT && !realtime)
			continue;
		if (kind == PROTECT)
			CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT), 0);
		CHECK_EQ(pthread_mutex_init(&m, &a), 0);
		CHECK_EQ(pthread_cond_init(&c, NULL), 0);
		lock(&m);
		ts = in_us(CLOCK_REALTIME, 100);
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
		unlock(&m);

		t = waiter(i & 4);
		lock(&m);
		go = 1;
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		unlock(&m);
		CHECK_EQ((long)join(t), 0);

		if (kind == ROBUST) { /* the waiter finds its mutex left by a dead owner */
			t = waiter(i & 4);
			join(start(signal_and_die, NULL));
			CHECK_EQ((long)join(t), EOWNERDEAD);
		}
		t = waiter(0);
		go = 1;
		lock(&m);
		CHECK_EQ(pthread_cond_signal(&c), 0);
		unlock(&m);
		join(t);
		CHECK_EQ(pthread_cond_destroy(&c), 0);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
