/* SPDX-License-Identifier: MIT */
/*
 * The futex paper's benchmark, from its description: Franke, Russell, Kirkwood, "Fuss, Futexes and Furwocks",
 * OLS 2002, section 5.  Tasks (threads, or processes over shared memory) are spread over locks; each draws a
 * time to hold the lock and one not to, uniform from half to one and a half of a mean, takes the
 * lock, works, releases it, works.
 *
 *   throughput    loops of all tasks
 *   efficiency    what the same loop without locks would do is measured by -n
 *   cv            coefficient of variation of the tasks' loops
 *   runs          how often the same task takes a lock again: lengths 1, 2, 3, more, and the longest
 *
 * Each lock guards two lines that are changed after it is taken and must be unchanged before it is released;
 * else the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "work.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 4 };

struct lock {
	union {
		pthread_mutex_t m;
		pthread_rwlock_t rw;
	};
	/* Guarded by it; of readers only looked at. */
	uint64_t owner, serial OWN_LINES;
	uint64_t run; /* of the last owner */
	uint64_t runs[RUNS], longest;
} OWN_LINES;

struct task {
	uint64_t loops, intrusions, seed;
	pthread_t id;
	pid_t pid;
	unsigned nr;
} OWN_LINES;

/* All that is shared, in memory that processes share. */
static struct {
	int stop;
	struct lock *lock;
	struct task *task;
} *shared;

static struct {
	unsigned tasks, locks;
	double seconds, warm_up, lht_us, nlht_us, read_share, units_per_us;
	bool processes, none, rw, json;
} opt = {.tasks = 2, .locks = 1, .seconds = 1, .warm_up = 0.1, .lht_us = 5, .nlht_us = 5};

static uint64_t draw(struct task *t, double mean_us)
{
	t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint64_t)(mean_us * opt.units_per_us * (0.5 + (double)(t->seed >> 11) / 9007199254740992.0));
}

static void end_run(struct lock *l)
{
	if (!l->run)
		return;
	l->runs[(l->run < RUNS ? l->run : RUNS) - 1]++;
	if (l->run > l->longest)
		l->longest = l->run;
}

/* With the lock, or the only one to read and write it at this moment. */
static uint64_t write_section(struct task *t, struct lock *l, uint64_t units)
{
	uint64_t x, serial = l->serial + 1;

	if (l->owner == t->nr + 1) {
		l->run++;
	} else {
		end_run(l);
		l->run = 1;
	}
	l->owner = t->nr + 1;
	l->serial = serial;
	x = work(units, serial);
	__asm__ volatile("" ::: "memory");
	t->intrusions += l->owner != t->nr + 1 || l->serial != serial;
	return x;
}

static uint64_t read_section(struct task *t, struct lock *l, uint64_t units)
{
	uint64_t x, serial = *(volatile uint64_t *)&l->serial;

	x = work(units, serial);
	__asm__ volatile("" ::: "memory");
	t->intrusions += *(volatile uint64_t *)&l->serial != serial;
	return x;
}

static void *run_task(void *arg)
{
	struct task *t = arg;
	struct lock *l = &shared->lock[t->nr % opt.locks];
	uint64_t x = 0, n = 0;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t inside = draw(t, opt.lht_us), outside = draw(t, opt.nlht_us);
		bool reads = opt.rw && (double)draw(t, 1) / opt.units_per_us - 0.5 < opt.read_share;

		if (opt.none) {
			x += work(inside, x);
		} else if (opt.rw && reads) {
			pthread_rwlock_rdlock(&l->rw);
			x += read_section(t, l, inside);
			pthread_rwlock_unlock(&l->rw);
		} else if (opt.rw) {
			pthread_rwlock_wrlock(&l->rw);
			x += write_section(t, l, inside);
			pthread_rwlock_unlock(&l->rw);
		} else {
			pthread_mutex_lock(&l->m);
			x += write_section(t, l, inside);
			pthread_mutex_unlock(&l->m);
		}
		x += work(outside, x);
		__atomic_store_n(&t->loops, ++n, __ATOMIC_RELAXED);
	}
	t->seed += x & 1;
	return NULL;
}

static void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "ulockflex: no memory for %u tasks\n", opt.tasks);
		exit(2);
	}
	return p;
}

static void make_locks(void)
{
	pthread_mutexattr_t m;
	pthread_rwlockattr_t rw;
	int pshared = opt.processes ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;

	pthread_mutexattr_init(&m);
	pthread_mutexattr_setpshared(&m, pshared);
	pthread_rwlockattr_init(&rw);
	pthread_rwlockattr_setpshared(&rw, pshared);
	for (unsigned i = 0; i < opt.locks; i++) {
		if (opt.rw)
			pthread_rwlock_init(&shared->lock[i].rw, &rw);
		else
			pthread_mutex_init(&shared->lock[i].m, &m);
	}
}

static void start(struct task *t)
{
	pid_t pid;

	if (!opt.processes) {
		if (pthread_create(&t->id, NULL, run_task, t)) {
			fprintf(stderr, "ulockflex: cannot make %u threads\n", opt.tasks);
			exit(2);
		}
		return;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* none goes on when the parent was ended */
		run_task(t);
		_exit(0);
	}
	if (pid < 0) {
		fprintf(stderr, "ulockflex: cannot make %u processes\n", opt.tasks);
		exit(2);
	}
	t->pid = pid; /* by the parent only: the child shares *t and has 0 */
}

static void take_loops(uint64_t *loops)
{
	for (unsigned i = 0; i < opt.tasks; i++)
		loops[i] = __atomic_load_n(&shared->task[i].loops, __ATOMIC_RELAXED);
}

static bool report(const uint64_t *a, const uint64_t *b, double ms)
{
	uint64_t total = 0, intrusions = 0, runs[RUNS] = {0}, longest = 0;
	double mean, variance = 0;

	for (unsigned i = 0; i < opt.tasks; i++) {
		total += b[i] - a[i];
		intrusions += shared->task[i].intrusions;
	}
	mean = (double)total / opt.tasks;
	for (unsigned i = 0; i < opt.tasks; i++)
		variance += ((double)(b[i] - a[i]) - mean) * ((double)(b[i] - a[i]) - mean) / opt.tasks;
	for (unsigned i = 0; i < opt.locks; i++) {
		end_run(&shared->lock[i]);
		for (int k = 0; k < RUNS; k++)
			runs[k] += shared->lock[i].runs[k];
		if (shared->lock[i].longest > longest)
			longest = shared->lock[i].longest;
	}
	printf(opt.json ? "{\"tasks\": %u, \"per_ms\": %.3f, \"cv\": %.4f, \"runs\": [%llu, %llu, %llu, %llu], "
			  "\"longest_run\": %llu, \"window_ms\": %.1f, \"check\": %s}\n" :
			  "tasks          %u\nloops/ms       %.2f\ncoefficient of variation %.4f\nruns of 1, 2, 3, more: %llu %llu "
			  "%llu %llu, longest %llu\nwindow (ms)    %.0f\nmutual exclusion %s\n",
	       opt.tasks, (double)total / ms, mean > 0 ? sqrt(variance) / mean : 0, (unsigned long long)runs[0],
	       (unsigned long long)runs[1], (unsigned long long)runs[2], (unsigned long long)runs[3],
	       (unsigned long long)longest, ms,
	       opt.json ? (intrusions ? "false" : "true") : (intrusions ? "VIOLATED" : "held"));
	return !intrusions;
}

static void usage(FILE *f)
{
	fputs("usage: ulockflex [options]\n"
	      "  -t N         tasks (2)\n"
	      "  -p           tasks are processes; default: threads\n"
	      "  -l N         locks (1), to which the tasks are dealt out\n"
	      "  -H US        mean time that a lock is held (5)\n"
	      "  -N US        mean time that it is not (5)\n"
	      "  -s SHARE     reader-writer locks, and this share of the loops reads (0 to 1)\n"
	      "  -n           no locks: what the loop does without\n"
	      "  -d SECONDS   measuring window (1)\n"
	      "  -w SECONDS   warm-up before it (0.1)\n"
	      "  -u N         work units in a microsecond; without: calibrate at start\n"
	      "  -j           one line of JSON\n",
	      f);
	exit(f == stdout ? 0 : 2);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:pl:H:N:s:nd:w:u:jh")) != -1) {
		switch (c) {
		case 't': opt.tasks = (unsigned)number(optarg, 1, 100000); break;
		case 'p': opt.processes = true; break;
		case 'l': opt.locks = (unsigned)number(optarg, 1, 1e6); break;
		case 'H': opt.lht_us = number(optarg, 0, 1e6); break;
		case 'N': opt.nlht_us = number(optarg, 0, 1e6); break;
		case 's': opt.rw = true; opt.read_share = number(optarg, 0, 1); break;
		case 'n': opt.none = true; break;
		case 'd': opt.seconds = number(optarg, 0.01, 3600); break;
		case 'w': opt.warm_up = number(optarg, 0, 3600); break;
		case 'u': opt.units_per_us = number(optarg, 1, 1e6); break;
		case 'j': opt.json = true; break;
		case 'h': usage(stdout); break;
		default: usage(stderr);
		}
	}
	if (optind != argc)
		usage(stderr);
}

int main(int argc, char **argv)
{
	uint64_t *a, *b, t0, t1;

	parse(argc, argv);
	if (!opt.units_per_us)
		opt.units_per_us = calibrate_units_per_us();
	shared = shared_memory(sizeof(*shared));
	shared->lock = shared_memory(opt.locks * sizeof(struct lock));
	shared->task = shared_memory(opt.tasks * sizeof(struct task));
	a = calloc(opt.tasks, sizeof(*a));
	b = calloc(opt.tasks, sizeof(*b));
	make_locks();
	for (unsigned i = 0; i < opt.tasks; i++) {
		shared->task[i].nr = i;
		shared->task[i].seed = i * 0x9e3779b97f4a7c15u + 1;
		start(&shared->task[i]);
	}
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	t0 = now_ns();
	take_loops(a);
	sleep_ns((uint64_t)(opt.seconds * 1e9));
	t1 = now_ns();
	take_loops(b);
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < opt.tasks; i++) {
		int status = 0;

		if (!opt.processes)
			pthread_join(shared->task[i].id, NULL);
		else if (waitpid(shared->task[i].pid, &status, 0) < 0 || status) {
			fprintf(stderr, "ulockflex: a task ended with status %#x: no result\n", status);
			exit(2);
		}
	}
	return !report(a, b, (double)(t1 - t0) / 1e6);
}
