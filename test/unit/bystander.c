/* SPDX-License-Identifier: MIT */
/*
 * A real-time bystander that keeps a spinning waiter off its CPU does not keep a free lock from the
 * waiter that sleeps: it gets the lock while the bystander runs on.
 */
#include "../tools/check.h"
#include <sched.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int cpu[2]; /* the sleeper's and the owner's; the spinner's and the bystander's */
static int sleeper_waits, spinner_waits, burn, burning, got, over;

static void stay_on(int c)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(c, &one);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
}

static double seconds(void)
{
	return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}

static void *sleeper(void *arg)
{
	stay_on(cpu[0]);
	STORE(sleeper_waits, 1);
	lock(&m);
	STORE(got, 1);
	unlock(&m);
	return NULL;
}

static void *spinner(void *arg)
{
	stay_on(cpu[1]);
	STORE(spinner_waits, 1);
	lock(&m);
	unlock(&m);
	return NULL;
}

/*
 * Until the sleeper has the lock; well below the 950 ms after which the kernel throttles real-time
 * threads.
 */
static void *bystander(void *arg)
{
	struct sched_param p = {.sched_priority = 10};
	double end;

	stay_on(cpu[1]);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))
		check_skip("no right to a real-time policy");
	while (!LOAD(burn))
		sleep_us(20);
	STORE(burning, 1);
	end = seconds() + 0.7;
	while (!LOAD(got) && seconds() < end)
		;
	STORE(over, LOAD(got) ? 1 : 2);
	return NULL;
}

int main(int argc, char **argv)
{
	cpu_set_t mine;
	int n = 0;

	check_begin(argv[0], 60);
	CHECK_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
	for (int c = 0; c < CPU_SETSIZE && n < 2; c++)
		if (CPU_ISSET(c, &mine))
			cpu[n++] = c;
	if (n < 2)
		check_skip("one CPU: nobody spins beside the owner");
	stay_on(cpu[0]);
	for (int i = 0; i < 20; i++) {
		pthread_t b, s, w;
		double spun;

		sleeper_waits = spinner_waits = burn = burning = got = over = 0;
		b = start(bystander, NULL);
		lock(&m);
		s = start(sleeper, NULL);
		UNTIL(LOAD(sleeper_waits));
		sleep_us(10000);
		w = start(spinner, NULL);
		while (!LOAD(spinner_waits))
			;
		/* From the first moment of its wait to the last in which a waiter still spins. */
		spun = seconds() + (double)(i % 5) * 20e-6;
		while (seconds() < spun)
			;
		STORE(burn, 1);
		while (!LOAD(burning))
			;
		unlock(&m);
		UNTIL(LOAD(over));
		CHECK_EQ(LOAD(over), 1);
		join(s);
		join(w);
		join(b);
	}
	return 0;
}
