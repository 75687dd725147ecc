/* SPDX-License-Identifier: MIT */
/*
 * What this machine costs, by the names of struct model (sim.h), in ns: medians of batches, with
 * the lowest and the highest.  For an idle machine.  usage: costs [CPU CPU | --lines]
 * --lines: instead, what a line takes between each two CPUs, from which a model's distances come.
 */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 15

static int cpu_a = 0, cpu_b = 1;
static struct {
	_Atomic uint32_t word __attribute__((aligned(128)));
	char end[124];
} line;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "costs: CPU %d: %m; give two that `nproc` counts\n", cpu);
		exit(1);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void say(const char *name, double *ns, const char *what)
{
	qsort(ns, BATCHES, sizeof(*ns), by_size);
	printf("{\"cost\":\"%s\",\"ns\":%.1f,\"from\":%.1f,\"to\":%.1f,\"what\":\"%s\"}\n", name,
	       ns[BATCHES / 2], ns[0], ns[BATCHES - 1], what);
	fflush(stdout);
}

/* ---- of one thread ----------------------------------------------------------------- */

static void rmw(void)
{
	atomic_fetch_add(&line.word, 1);
}

static void pauses(void)
{
	__builtin_ia32_pause();
}

static void reads_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
}

static void calls(void)
{
	syscall(SYS_getppid);
}

static void wakes_nobody(void)
{
	syscall(SYS_futex, &line.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static void interrupts_other(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static void creates(void)
{
	pthread_t t;

	pthread_create(&t, NULL, nothing, NULL);
	pthread_join(t, NULL);
}

static void alone(const char *name, void (*of)(void), int n, const char *what)
{
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		double from = now_ns();

		for (int i = 0; i < n; i++)
			of();
		ns[b] = (now_ns() - from) / n;
	}
	say(name, ns, what);
}

/* ---- of two ------------------------------------------------------------------------ */

#define TURNS 20000

static void *answers(void *turns)
{
	pin(cpu_b);
	for (uint32_t i = 0; i < *(const uint32_t *)turns; i++) {
		while (atomic_load_explicit(&line.word, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(&line.word, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

static void lines(double *ns, uint32_t turns)
{
	for (int b = 0; b < BATCHES; b++) {
		pthread_t t;
		double from = 0;

		atomic_store(&line.word, 0);
		pthread_create(&t, NULL, answers, &turns);
		for (uint32_t i = 0; i < turns; i++) {
			if (i == turns / 10)
				from = now_ns();
			atomic_store_explicit(&line.word, 2 * i + 1, memory_order_release);
			while (atomic_load_explicit(&line.word, memory_order_acquire) != 2 * i + 2)
				;
		}
		ns[b] = (now_ns() - from) / (turns * .9) / 2;
		pthread_join(t, NULL);
	}
}

static void lines_of_two(void)
{
	double ns[BATCHES];

	lines(ns, TURNS);
	say("cluster", ns, "a line from the other CPU: half a round of turns by loads and stores");
}

static void lines_of_all(void)
{
	cpu_set_t all;
	double ns[BATCHES];

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2) {
		fprintf(stderr, "costs: --lines needs two CPUs or more, up to %d\n", CPU_SETSIZE);
		exit(1);
	}
	for (cpu_a = 0; cpu_a < CPU_SETSIZE; cpu_a++) {
		for (cpu_b = cpu_a + 1; cpu_b < CPU_SETSIZE; cpu_b++) {
			if (!CPU_ISSET(cpu_a, &all) || !CPU_ISSET(cpu_b, &all))
				continue;
			pin(cpu_a);
			lines(ns, TURNS / 10);
			qsort(ns, BATCHES, sizeof(*ns), by_size);
			printf("{\"cpus\":[%d,%d],\"ns\":%.1f,\"from\":%.1f,\"to\":%.1f}\n", cpu_a,
			       cpu_b, ns[BATCHES / 2], ns[0], ns[BATCHES - 1]);
			fflush(stdout);
		}
	}
}

static void *yields(void *arg)
{
	pin(cpu_a);
	for (int i = 0; i < TURNS; i++)
		sched_yield();
	return arg;
}

static void switches(void)
{
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		pthread_t t[2];
		double from = now_ns();

		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, yields, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		ns[b] = (now_ns() - from) / (2 * TURNS);
	}
	say("cswitch", ns, "sched_yield() to another thread of the same CPU, less syscall");
}

static _Atomic int over;

static void *runs(void *arg)
{
	pin(cpu_b);
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
	return arg;
}

static void interrupts(void)
{
	pthread_t t;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0)) {
		fprintf(stderr, "costs: interrupt: no membarrier(2): %m\n");
		return;
	}
	pthread_create(&t, NULL, runs, NULL);
	for (double from = now_ns(); now_ns() - from < 1e7;) /* until it runs */
		;
	alone("interrupt", interrupts_other, 2000,
	      "membarrier(2) while another thread runs on the other CPU, less syscall");
	atomic_store(&over, 1);
	pthread_join(t, NULL);
}

#define WAKES 200
static double woken_at;
static _Atomic int asleep;

static void *sleeps(void *arg)
{
	pin(*(const int *)arg);
	for (uint32_t i = 0; i < WAKES; i++) {
		atomic_store(&asleep, 1);
		while (atomic_load(&line.word) == i)
			syscall(SYS_futex, &line.word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, i, NULL,
				NULL, 0);
		woken_at = now_ns();
		atomic_store(&asleep, 2);
	}
	return NULL;
}

/* The sleeper's CPU has been idle for `idle_us`. */
static void wake_ups(const char *name, int idle_us, const char *latency, const char *what)
{
	double call[BATCHES], late[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		double calling = 0, waiting = 0;
		pthread_t t;

		atomic_store(&line.word, 0);
		atomic_store(&asleep, 0);
		pthread_create(&t, NULL, sleeps, &cpu_b);
		for (int i = 0; i < WAKES; i++) {
			double from, to;

			while (atomic_load(&asleep) != 1)
				;
			for (from = now_ns(); now_ns() - from < idle_us * 1000;)
				;
			atomic_store(&asleep, 0);
			from = now_ns();
			atomic_fetch_add(&line.word, 1);
			syscall(SYS_futex, &line.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL,
				NULL, 0);
			to = now_ns();
			while (atomic_load(&asleep) == 0)
				;
			calling += to - from;
			waiting += woken_at - from;
		}
		pthread_join(t, NULL);
		call[b] = calling / WAKES;
		late[b] = waiting / WAKES;
	}
	if (name)
		say(name, call,
		    "futex(FUTEX_WAKE) of one sleeper, the caller's time, less syscall");
	say(latency, late, what);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--lines")) {
		lines_of_all();
		return 0;
	}
	if (argc == 3) {
		cpu_a = atoi(argv[1]);
		cpu_b = atoi(argv[2]);
	}
	pin(cpu_a);
	alone("rmw", rmw, 200000, "an atomic on a line of its own");
	alone("pause", pauses, 100000, "the pause instruction");
	alone("clock", reads_clock, 100000, "clock_gettime()");
	alone("syscall", calls, 100000, "getppid()");
	alone("futex", wakes_nobody, 100000, "futex(FUTEX_WAKE), nobody sleeps, less syscall");
	alone("create", creates, 200, "pthread_create() and join, on one CPU");
	switches();
	lines_of_two();
	interrupts();
	wake_ups("wake", 20, "latency_20us",
		 "from before FUTEX_WAKE until the other runs, idle 20 us");
	wake_ups(NULL, 500, "latency_500us", "the same, idle for 500 us");
	return 0;
}
