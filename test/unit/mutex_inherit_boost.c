/* SPDX-License-Identifier: MIT */
/*
 * Priority inheritance: on one CPU a thread of middle priority does not keep
 * the owner from releasing what a thread of high priority waits for.  With an
 * argument the mutex is a default one, for locks that boost without it (src/zoo).
 */
#include "../tools/check.h"
#include <sched.h>

static pthread_mutex_t m;
static int held, middle_runs, high_waits, high_has_it, gave_up;

static pthread_t start_fifo(void *(*f)(void *), int priority, const cpu_set_t *cpu)
{
	struct sched_param param = {.sched_priority = priority};
	pthread_attr_t a;
	pthread_t t;
	int r;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED), 0);
	CHECK_EQ(pthread_attr_setschedpolicy(&a, SCHED_FIFO), 0);
	CHECK_EQ(pthread_attr_setschedparam(&a, &param), 0);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof *cpu, cpu), 0);
	r = pthread_create(&t, &a, f, NULL);
	if (r == EPERM)
		check_skip("no right to a real-time policy");
	CHECK_EQ(r, 0);
	return t;
}

static void *low(void *arg)
{
	lock(&m);
	STORE(held, 1);
	/*
	 * Off the CPU until the other two are where they shall be; then there is work left to do.
	 */
	UNTIL(LOAD(middle_runs) && LOAD(high_waits));
	for (volatile int i = 0; i < 100000; i++)
		;
	unlock(&m);
	return NULL;
}

/*
 * Would keep the CPU for ever; gives up at last, so that a lock without inheritance fails and does
 * not hang.
 */
static void *middle(void *arg)
{
	struct timespec end = in_us(CLOCK_MONOTONIC, 5000000);

	STORE(middle_runs, 1);
	while (!LOAD(high_has_it) && !is_past(CLOCK_MONOTONIC, end))
		;
	STORE(gave_up, !LOAD(high_has_it));
	return NULL;
}

static void *high(void *arg)
{
	STORE(high_waits, 1);
	lock(&m);
	STORE(high_has_it, 1);
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t a;
	cpu_set_t mine, one;
	pthread_t t[3];
	int cpu = 0;

	check_begin(argv[0], 60);
	CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
	while (!CPU_ISSET(cpu, &mine))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a,
					       argc > 1 ? PTHREAD_PRIO_NONE : PTHREAD_PRIO_INHERIT),
		 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	t[0] = start_fifo(low, 10, &one);
	UNTIL(LOAD(held));
	/* The highest first: when the middle one gets to run, the other waits. */
	t[1] = start_fifo(high, 30, &one);
	t[2] = start_fifo(middle, 20, &one);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_EQ(gave_up, 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
	return 0;
}
