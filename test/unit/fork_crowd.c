/* SPDX-License-Identifier: MIT */
/*
 * Thousands of threads that want one lock on two CPUs leave these alone while they sleep, also in
 * the child of a fork, where each looks whether the designated waiter is one of the parent.
 */
#include "../tools/check.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "lock/lock.h"

#define THREADS 4000
#define LEAST	1000 /* on an emulated CPU, which takes 51 s for all of them; tells as well */
#define CPUS	2
#define TIME_US 1000000
#define WORK	300

static struct fg_lock l;
static int stop, threads;

static void work(void)
{
	for (volatile int i = 0; i < WORK; i++)
		;
}

static void *take_turns(void *arg)
{
	while (!LOAD(stop)) {
		_fg_lock(&l);
		work();
		_fg_unlock(&l);
		work();
	}
	return arg;
}

static long waits_of_all(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw;
}

/* How often the threads have left their CPUs by themselves in that time. */
static long waits(void)
{
	static pthread_t thread[THREADS];
	pthread_attr_t attr;
	long before, after;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, check_small_stack()), 0);
	for (int i = 0; i < threads; i++)
		CHECK_EQ(pthread_create(&thread[i], &attr, take_turns, NULL), 0);
	before = waits_of_all();
	sleep_us(TIME_US);
	after = waits_of_all();
	STORE(stop, 1);
	for (int i = 0; i < threads; i++)
		join(thread[i]);
	return after - before;
}

static void use_few_cpus(void)
{
	cpu_set_t all, few;
	int n = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&few);
	for (int i = 0; i < CPU_SETSIZE && n < CPUS; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &few);
			n++;
		}
	CHECK_EQ(sched_setaffinity(0, sizeof few, &few), 0);
}

int main(int argc, char **argv)
{
	long *in_child, here;
	pid_t child;

	(void)argc;
	check_begin(argv[0], 60);
	threads = check_rounds(THREADS);
	if (threads < LEAST)
		threads = LEAST;
	use_few_cpus();
	in_child = mmap(NULL, sizeof *in_child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(in_child != MAP_FAILED);
	child = check_fork();
	if (!child) {
		*in_child = waits();
		_exit(0);
	}
	check_child(child);
	here = waits();
	check_say("%ld waits, %ld in the child", here, *in_child);
	/* Each for itself they were 37 times as many; a busy machine may leave one side little. */
	CHECK(*in_child < 8 * here + 20000);
	return 0;
}
