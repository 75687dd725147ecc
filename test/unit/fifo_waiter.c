/* SPDX-License-Identifier: MIT */
/*
 * A real-time thread that waits for a lock whose owner is an ordinary thread of the same CPU lets
 * the owner run.
 */
#include "../tools/check.h"
#include <sched.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int held;
static double spent;

static double cpu_time(void)
{
	return (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
}

static void *hold(void *arg)
{
	double end;

	lock(&m);
	STORE(held, 1);
	end = cpu_time() + 0.01;
	while (cpu_time() < end)
		;
	unlock(&m);
	return NULL;
}

static void *want(void *arg)
{
	struct sched_param p = {.sched_priority = 10};
	double begin;

	UNTIL(LOAD(held));
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))
		check_skip("no right to a real-time policy");
	begin = cpu_time();
	lock(&m);
	spent += cpu_time() - begin;
	unlock(&m);
	return NULL;
}

int main(int argc, char **argv)
{
	cpu_set_t one;

	check_begin(argv[0], 20);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	for (int i = 0; i < 20; i++) {
		pthread_t a, b;

		held = 0;
		a = start(hold, NULL);
		b = start(want, NULL);
		join(a);
		join(b);
	}
	/*
	 * 20 sections of 10 ms.  A waiter that spins keeps the owner off the CPU until the kernel
	 * throttles real-time threads, after 950 ms of a second: it would burn many times what the
	 * owner does.
	 */
	CHECK(spent < 0.5);
	return 0;
}
