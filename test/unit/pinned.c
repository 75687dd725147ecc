/* SPDX-License-Identifier: MIT */
/*
 * Threads that are pinned to a CPU each run at the same time: to spin for one another is no waste,
 * as the affinity of whoever asks would say.  Two on one CPU do not.
 */
#include "../tools/check.h"

#include <sched.h>
#include <semaphore.h>

#include "runtime/cpus.h"
#include "runtime/thread.h"

static sem_t ready, done;

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *other(void *cpu)
{
	CHECK(fg_has_slot(fg_self()));
	pin(*(int *)cpu);
	sem_post(&ready);
	while (sem_wait(&done))
		;
	return NULL;
}

int main(void)
{
	struct timespec a_while = {.tv_nsec = 50000000};
	cpu_set_t all;
	pthread_t thread;
	int cpu[2], n = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &all))
			cpu[n++] = i;
	if (n < 2) {
		puts("one CPU: no two to pin threads to");
		return 77;
	}
	CHECK_EQ(sem_init(&ready, 0, 0), 0);
	CHECK_EQ(sem_init(&done, 0, 0), 0);

	pin(cpu[0]);
	CHECK_EQ(fg_cpus(), 1); /* there is no other yet */
	CHECK_EQ(pthread_create(&thread, NULL, other, &cpu[1]), 0);
	CHECK_EQ(sem_wait(&ready), 0);
	nanosleep(&a_while, NULL); /* one is asked about again */
	CHECK_EQ(fg_cpus(), 2);

	CHECK_EQ(sem_post(&done), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, other, &cpu[0]), 0);
	CHECK_EQ(sem_wait(&ready), 0);
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
	CHECK_EQ(fg_cpus(), 1);
	CHECK_EQ(sem_post(&done), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	return 0;
}
