/* SPDX-License-Identifier: MIT */
/*
 * What the primitives cost when nobody else wants them: ns for a pair of lock
 * and unlock, and of its relatives, in a process with one thread and in one
 * with a second, idle thread (glibc takes shortcuts in the first case).
 *
 *   cc -O2 -pthread -o uncontended uncontended.c
 *
 * Each figure is taken over many short batches.  The best one is the cost
 * without interrupts; the median shows whether the best was luck.
 * `-n N -p NAME` runs one operation N times and reads no clock, for a tool that
 * counts instructions (see ../instructions).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "work.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Operations between two looks at the clock, so that these do not count.  Not varied. */
enum { BATCH = 1000, MAX_BATCHES = 100000 };

static struct {
	pthread_mutex_t normal, recursive, errorcheck, inner;
	pthread_cond_t cond;
	pthread_rwlock_t rwlock;
	uint64_t value;
} shared OWN_LINES;

/* An operation on a lock that is free cannot fail; one that does would be timed for nothing. */
static void must(int err)
{
	if (err) {
		fprintf(stderr, "uncontended: %s\n", strerror(err));
		exit(2);
	}
}

static void op_mutex(uint64_t n)
{
	while (n--) {
		must(pthread_mutex_lock(&shared.normal));
		shared.value++;
		must(pthread_mutex_unlock(&shared.normal));
	}
}

static void op_trylock(uint64_t n)
{
	while (n--) {
		must(pthread_mutex_trylock(&shared.normal));
		shared.value++;
		must(pthread_mutex_unlock(&shared.normal));
	}
}

static void op_trylock_busy(uint64_t n)
{
	must(pthread_mutex_lock(&shared.normal));
	while (n--)
		must(pthread_mutex_trylock(&shared.normal) != EBUSY);
	must(pthread_mutex_unlock(&shared.normal));
}

static void op_nested(uint64_t n)
{
	/* A thread's first lock is set up, and is not like the others. */
	must(pthread_mutex_lock(&shared.normal));
	must(pthread_mutex_unlock(&shared.normal));
	must(pthread_mutex_lock(&shared.normal));
	while (n--) {
		must(pthread_mutex_lock(&shared.inner));
		shared.value++;
		must(pthread_mutex_unlock(&shared.inner));
	}
	must(pthread_mutex_unlock(&shared.normal));
}

/* Lock coupling: the next one is taken before the one before it is released. */
static void op_hand_over_hand(uint64_t n)
{
	pthread_mutex_t *held = &shared.normal, *next = &shared.inner, *swap;

	must(pthread_mutex_lock(held));
	while (n--) {
		must(pthread_mutex_lock(next));
		shared.value++;
		must(pthread_mutex_unlock(held));
		swap = held;
		held = next;
		next = swap;
	}
	must(pthread_mutex_unlock(held));
}

static void op_recursive(uint64_t n)
{
	while (n--) {
		must(pthread_mutex_lock(&shared.recursive));
		shared.value++;
		must(pthread_mutex_unlock(&shared.recursive));
	}
}

static void op_relock(uint64_t n)
{
	must(pthread_mutex_lock(&shared.recursive));
	while (n--) {
		must(pthread_mutex_lock(&shared.recursive));
		shared.value++;
		must(pthread_mutex_unlock(&shared.recursive));
	}
	must(pthread_mutex_unlock(&shared.recursive));
}

static void op_errorcheck(uint64_t n)
{
	while (n--) {
		must(pthread_mutex_lock(&shared.errorcheck));
		shared.value++;
		must(pthread_mutex_unlock(&shared.errorcheck));
	}
}

static void op_signal(uint64_t n)
{
	while (n--)
		must(pthread_cond_signal(&shared.cond));
}

static void op_broadcast(uint64_t n)
{
	while (n--)
		must(pthread_cond_broadcast(&shared.cond));
}

static void op_rdlock(uint64_t n)
{
	while (n--) {
		must(pthread_rwlock_rdlock(&shared.rwlock));
		__asm__ volatile("" ::"r"(shared.value));
		must(pthread_rwlock_unlock(&shared.rwlock));
	}
}

static void op_wrlock(uint64_t n)
{
	while (n--) {
		must(pthread_rwlock_wrlock(&shared.rwlock));
		shared.value++;
		must(pthread_rwlock_unlock(&shared.rwlock));
	}
}

/* Any call by libc's name for all of them, and one that wakes nobody. */
static void op_syscall(uint64_t n)
{
	while (n--)
		must(syscall(SYS_getppid) < 0);
}

static void op_wake(uint64_t n)
{
	while (n--)
		must((int)syscall(SYS_futex, &shared.value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

static const struct op {
	const char *name, *help;
	void (*run)(uint64_t n);
} ops[] = {
    {"mutex", "lock + unlock", op_mutex},
    {"trylock", "trylock + unlock", op_trylock},
    {"trylock-busy", "trylock of a held mutex", op_trylock_busy},
    {"nested", "lock + unlock, another held", op_nested},
    {"hand-over-hand", "lock + unlock of the one before", op_hand_over_hand},
    {"recursive", "recursive: lock + unlock", op_recursive},
    {"relock", "recursive: held already", op_relock},
    {"errorcheck", "errorcheck: lock + unlock", op_errorcheck},
    {"signal", "cond signal, no waiter", op_signal},
    {"broadcast", "cond broadcast, no waiter", op_broadcast},
    {"rdlock", "rwlock: rdlock + unlock", op_rdlock},
    {"wrlock", "rwlock: wrlock + unlock", op_wrlock},
    {"syscall", "syscall(SYS_getppid)", op_syscall},
    {"futex-wake", "syscall(SYS_futex), nobody sleeps", op_wake},
};
enum { NR_OPS = sizeof(ops) / sizeof(ops[0]) };

static struct {
	uint64_t once;
	const char *only;
	unsigned batches;
	bool json, second;
} opt = {.batches = 2000};

static void make_mutex(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	must(pthread_mutexattr_settype(&a, type));
	must(pthread_mutex_init(m, &a));
	pthread_mutexattr_destroy(&a);
}

static void *idle(void *arg)
{
	/* Blocked in the kernel, on nothing that the preload library replaces. */
	for (;;)
		sleep_ns(3600ull * 1000000000u);
	return arg;
}

#define STARTS_NS 20000000u /* until it is asleep; not varied */

static void add_idle_thread(void)
{
	pthread_t t;

	must(pthread_create(&t, NULL, idle, NULL));
	sleep_ns(STARTS_NS);
}

static void measure(const struct op *op, unsigned nr_threads, bool first)
{
	static uint64_t t[MAX_BATCHES];
	uint64_t before = now_ns();

	/* Warm caches, branch predictors and the clock rate. */
	while (now_ns() - before < 5000000)
		op->run(BATCH);
	for (unsigned i = 0; i < opt.batches; i++) {
		uint64_t t0 = now_ns();

		op->run(BATCH);
		t[i] = now_ns() - t0;
	}
	qsort(t, opt.batches, sizeof(t[0]), cmp_u64);

	double best = (double)t[0] / BATCH, median = (double)t[opt.batches / 2] / BATCH;

	if (opt.json)
		printf(
		    "%s{\"op\": \"%s\", \"threads\": %u, \"best_ns\": %.3f, \"median_ns\": %.3f}",
		    first ? "" : ", ", op->name, nr_threads, best, median);
	else
		printf("%-14s %-28s %u thread%s  best %6.2f  median %6.2f ns\n", op->name, op->help,
		       nr_threads, nr_threads == 1 ? " " : "s", best, median);
}

static void usage(FILE *f)
{
	fputs("usage: uncontended [-j] [-b BATCHES] [-p OPERATION]\n"
	      "       uncontended -n N -p OPERATION [-2]     run it N times, nothing else\n"
	      "  -b N     batches of 1000 (2000)\n"
	      "  -2       with a second, idle thread (default: first without, then with)\n"
	      "  -j       JSON\n"
	      "operations:\n",
	      f);
	for (unsigned i = 0; i < NR_OPS; i++)
		fprintf(f, "  %-14s %s\n", ops[i].name, ops[i].help);
	exit(f == stdout ? 0 : 2);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "n:p:b:2jh")) != -1) {
		switch (c) {
		case 'n': opt.once = strtoull(optarg, NULL, 10); break;
		case 'p': opt.only = optarg; break;
		case 'b': opt.batches = (unsigned)strtoul(optarg, NULL, 10); break;
		case '2': opt.second = true; break;
		case 'j': opt.json = true; break;
		default: usage(c == 'h' ? stdout : stderr);
		}
	}
	const struct op *only = NULL;

	for (unsigned i = 0; i < NR_OPS; i++)
		if (opt.only && !strcmp(opt.only, ops[i].name))
			only = &ops[i];
	if (optind < argc || (opt.only && !only) || (opt.once && !only) || opt.batches < 1 ||
	    opt.batches > MAX_BATCHES)
		usage(stderr);

	make_mutex(&shared.normal, PTHREAD_MUTEX_DEFAULT);
	make_mutex(&shared.inner, PTHREAD_MUTEX_DEFAULT);
	make_mutex(&shared.recursive, PTHREAD_MUTEX_RECURSIVE);
	make_mutex(&shared.errorcheck, PTHREAD_MUTEX_ERRORCHECK);
	must(pthread_cond_init(&shared.cond, NULL));
	must(pthread_rwlock_init(&shared.rwlock, NULL));

	if (opt.once) {
		if (opt.second)
			add_idle_thread();
		only->run(opt.once);
		return 0;
	}

	bool first = true;

	if (opt.json)
		printf("[");
	for (unsigned threads = opt.second ? 2 : 1; threads <= 2; threads++) {
		if (threads == 2)
			add_idle_thread();
		for (unsigned i = 0; i < NR_OPS; i++) {
			if (only && only != &ops[i])
				continue;
			measure(&ops[i], threads, first);
			first = false;
		}
	}
	if (opt.json)
		printf("]\n");
	return 0;
}
