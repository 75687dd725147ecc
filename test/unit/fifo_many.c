/* SPDX-License-Identifier: MIT */
/*
 * More real-time threads of one priority than CPUs, that fight for a lock: those that have a CPU
 * let the others have it, as where a waiter sleeps.  A kernel does not do it for them (SCHED_FIFO).
 * Counted: what the first two have done when another begins.
 */
#include "../tools/check.h"
#include <sched.h>
#include <stdbool.h>

#define CPUS	 2
#define ROUNDS	 20
#define SECTIONS 30000000u /* 0.2 to 2 s of one thread alone, by machine */
/*
 * In three of four rounds another begins before so many.  Not in all: of the first two one may get
 * no CPU for long, and the other does not fight then, nor would it leave its CPU for glibc's locks.
 */
#define SOON 8000000u

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t guarded;
static uint64_t before; /* sections of the first two until another began */
static int stop, running;

static void *fight(void *arg)
{
	(void)arg;
	ADD(running, 1);
	UNTIL(LOAD(running) == CPUS);
	for (uint32_t i = 0; i < SECTIONS && !LOAD(stop); i++) {
		lock(&m);
		STORE(guarded, guarded + 1);
		unlock(&m);
	}
	return NULL;
}

static void *comes_later(void *arg)
{
	(void)arg;
	before = LOAD(guarded);
	STORE(stop, 1);
	return NULL;
}

static bool one_round(void)
{
	pthread_t t[CPUS + 1];

	STORE(running, 0);
	STORE(stop, 0);
	STORE(guarded, 0);
	for (int i = 0; i < CPUS; i++)
		t[i] = start(fight, NULL);
	UNTIL(LOAD(running) == CPUS);
	t[CPUS] = start(comes_later, NULL);
	for (int i = 0; i <= CPUS; i++)
		join(t[i]);
	return before < SOON;
}

int main(int argc, char **argv)
{
	struct sched_param p = {.sched_priority = 5};
	cpu_set_t all, two;
	int n = 0, soon = 0;

	check_begin(argv[0], 60);
	(void)argc;
	CPU_ZERO(&two);
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < CPUS; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &two);
			n++;
		}
	if (n < CPUS)
		check_skip("one CPU");
	CHECK_EQ(sched_setaffinity(0, sizeof two, &two), 0);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))
		check_skip("no right to a real-time policy");
	for (int i = 0; i < ROUNDS; i++)
		soon += one_round();
	CHECK(soon >= ROUNDS * 3 / 4);
	return 0;
}
