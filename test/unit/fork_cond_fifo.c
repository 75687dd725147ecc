/* SPDX-License-Identifier: MIT */
/*
 * In a child of fork a thread makes a condition variable of the parent its own.  After any
 * instruction of that a SCHED_FIFO thread takes the CPU from it and uses the same one: it gets
 * through, and so does the other.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum { STEPS = 250 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER, conds[STEPS];
static int waits, at, sent, event, done;

static void *wait_for_ever(void *arg)
{
	lock(&m);
	STORE(waits, 1);
	for (;;)
		pthread_cond_wait(&c, &m);
	return NULL;
}

static void one_cpu(void)
{
	cpu_set_t cpus, one;
	int cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void *interfere(void *arg)
{
	uint64_t n;

	one_cpu();
	for (int i = 0; i < STEPS; i++) {
		CHECK_EQ(read(event, &n, sizeof n), sizeof n);
		CHECK_EQ(pthread_cond_signal(&conds[i]), 0);
		STORE(done, i + 1);
	}
	return NULL;
}

static void interrupt(void)
{
	uint64_t n = 1;

	sent = 1;
	CHECK_EQ(write(event, &n, sizeof n), sizeof n);
}

/* The other thread runs at once, and this one goes on when that sleeps. */
static void at_one(void)
{
	if (step_count == at)
		interrupt();
}

static void child(void)
{
	struct sched_param p = {.sched_priority = 1};
	struct rlimit awake = {400000, 400000}; /* us: then it spins for ever */
	pthread_t t;

	CHECK_EQ(setrlimit(RLIMIT_RTTIME, &awake), 0);
	event = eventfd(0, 0);
	CHECK(event >= 0);
	t = start(interfere, NULL);
	if (pthread_setschedparam(t, SCHED_FIFO, &p))
		check_skip("no right to a real-time policy");
	one_cpu();
	for (int i = 0; i < STEPS; i++) {
		at = i + 1;
		sent = 0;
		step_begin(at_one);
		pthread_cond_signal(&conds[i]);
		step_end();
		if (!sent) /* it was shorter */
			interrupt();
		UNTIL(LOAD(done) == i + 1);
	}
	join(t);
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t pid;

	check_begin(argv[0], 20);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc's waits in such a child for waiters of the parent");
	start(wait_for_ever, NULL);
	UNTIL(LOAD(waits));
	lock(&m); /* it waits */
	for (int i = 0; i < STEPS; i++)
		memcpy(&conds[i], &c, sizeof c); /* as many of the kind */
	unlock(&m);
	pid = check_fork();
	if (!pid)
		child();
	check_child(pid);
	return 0;
}
#endif
