/* SPDX-License-Identifier: MIT */
/*
 * The futex paper's benchmark, from its description: Franke, Russell, Kirkwood, "Fuss, Futexes and
 * Furwocks", OLS 2002, section 4.1.  Locks are dealt out to shared regions, and tasks (threads or
 * processes) to locks; each task draws a time to hold the lock and one not to, uniform from half to
 * one and a half of a mean, takes the lock, works, releases it, works.
 *
 *   throughput    loops of all tasks
 *   efficiency    what the same loop without locks would do is measured by -n
 *   cv            the paper's coefficient of variance: the standard deviation of the tasks' loops,
 *                 by their mean
 *   runs          how often the same task takes a lock again: lengths 1, 2, 3, more, and the
 *                 longest
 *   semaphores    -c: general ones in the place of the mutexes, with so many units
 *   contention    -C: the share of the loops that found their lock held, in a run of its own since
 *                 they try it first
 *
 * A region is anonymous memory, a System V segment or a file.  Of the last two each process maps
 * its own, so that a lock is at another address in each of them.
 *
 * Each lock guards two lines that are changed after it is taken and must be unchanged before it is
 * released; else the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "regions.h"
#include "work.h"
#include "zoo/sema.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 4, REGIONS = 64 };

struct lock {
	union {
		pthread_mutex_t m;
		pthread_rwlock_t rw;
		struct zoo_sema sema;
	};
	unsigned inside; /* semaphores: that have a unit */
	/* Guarded by it; of readers only looked at. */
	uint64_t owner, serial OWN_LINES;
	uint64_t run; /* of the last owner */
	uint64_t runs[RUNS], longest;
} OWN_LINES;

struct task {
	uint64_t loops, tried, contended, intrusions, seed;
	pthread_t id;
	pid_t pid;
	unsigned nr;
} OWN_LINES;

/* All that is shared, in memory that processes share. */
static struct {
	/* measuring: the warm-up, in which tasks may still be alone, is over */
	int stop, measuring;
	struct task *task;
} *shared;

/* Where this process has them: lock i is number i / regions of region i % regions. */
static struct region region[REGIONS];

/* Of the zoo's library (src/zoo/choices.h); NULL without. */
static int (*unlock_fairly)(pthread_mutex_t *);
static int (*set_spin)(pthread_mutex_t *, uint32_t ns);
static int (*sema_init)(struct zoo_sema *, uint32_t, bool fair, bool shared);
static void (*sema_down)(struct zoo_sema *), (*sema_up)(struct zoo_sema *);
static bool (*sema_trydown)(struct zoo_sema *);

static struct {
	unsigned tasks, locks, regions, units; /* units: 0, no semaphores */
	enum memory memory;
	double seconds, warm_up, lht_us, nlht_us, read_share, fair_share, spin_us, units_per_us;
	bool processes, none, rw, json, contention;
} opt = {.tasks = 2,
	 .locks = 1,
	 .regions = 1,
	 .spin_us = -1,
	 .seconds = 1,
	 .warm_up = 0.1,
	 .lht_us = 5,
	 .nlht_us = 5};

static uint64_t draw(struct task *t, double mean_us)
{
	t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint64_t)(mean_us * opt.units_per_us *
			  (0.5 + (double)(t->seed >> 11) / 9007199254740992.0));
}

/* True so often. */
static bool chance(struct task *t, double share)
{
	return share > 0 && (double)draw(t, 1) / opt.units_per_us - 0.5 < share;
}

static struct lock *lock_of(unsigned i)
{
	return (struct lock *)region[i % opt.regions].at + i / opt.regions;
}

static void end_run(struct lock *l)
{
	if (!l->run || !__atomic_load_n(&shared->measuring, __ATOMIC_RELAXED))
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

/* With a unit, among others that have one. */
static uint64_t unit_section(struct task *t, struct lock *l, uint64_t units)
{
	uint64_t x;

	t->intrusions += __atomic_add_fetch(&l->inside, 1, __ATOMIC_RELAXED) > opt.units;
	x = work(units, t->loops);
	__atomic_sub_fetch(&l->inside, 1, __ATOMIC_RELAXED);
	return x;
}

static bool take_at_once(struct lock *l, bool reads)
{
	if (opt.units)
		return sema_trydown(&l->sema);
	if (!opt.rw)
		return !pthread_mutex_trylock(&l->m);
	return !(reads ? pthread_rwlock_tryrdlock(&l->rw) : pthread_rwlock_trywrlock(&l->rw));
}

static void take(struct task *t, struct lock *l, bool reads)
{
	if (opt.contention) {
		bool measuring = __atomic_load_n(&shared->measuring, __ATOMIC_RELAXED),
		     got = take_at_once(l, reads);

		t->tried += measuring;
		t->contended += measuring && !got;
		if (got)
			return;
	}
	if (opt.units)
		sema_down(&l->sema);
	else if (!opt.rw)
		pthread_mutex_lock(&l->m);
	else if (reads)
		pthread_rwlock_rdlock(&l->rw);
	else
		pthread_rwlock_wrlock(&l->rw);
}

static void give(struct task *t, struct lock *l)
{
	if (opt.units)
		sema_up(&l->sema);
	else if (opt.rw)
		pthread_rwlock_unlock(&l->rw);
	else if (!chance(t, opt.fair_share))
		pthread_mutex_unlock(&l->m);
	else
		unlock_fairly(&l->m);
}

static void *run_task(void *arg)
{
	struct task *t = arg;
	struct lock *l = lock_of(t->nr % opt.locks);
	uint64_t x = 0, n = 0;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t inside = draw(t, opt.lht_us), outside = draw(t, opt.nlht_us);
		bool reads = opt.rw && chance(t, opt.read_share);

		if (opt.none) {
			x += work(inside, x);
		} else {
			take(t, l, reads);
			x += opt.units ? unit_section(t, l, inside) :
			     reads     ? read_section(t, l, inside) :
					 write_section(t, l, inside);
			give(t, l);
		}
		x += work(outside, x);
		__atomic_store_n(&t->loops, ++n, __ATOMIC_RELAXED);
	}
	t->seed += x & 1;
	return NULL;
}

/*
 * Whose locks these are; glibc marks its process-shared ones, and the libraries of ours do not take
 * its marks.
 */
static bool is_glibcs(const struct lock *l)
{
	return opt.rw ? l->rw.__data.__shared != 0 : (l->m.__data.__kind & 0x80) != 0;
}

static void check_locks(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	if (opt.units)
		return;
	if (opt.processes && !opt.none && preloaded && strstr(preloaded, "libflexguard") &&
	    is_glibcs(lock_of(0)))
		fail(
		    "the preloaded library leaves process-shared %s to glibc: this would measure glibc's",
		    opt.rw ? "rwlocks" : "mutexes");
	if (opt.fair_share > 0) {
		pthread_mutex_lock(&lock_of(0)->m);
		if (!unlock_fairly || unlock_fairly(&lock_of(0)->m))
			fail(
			    "-f needs a lock whose releases can choose: flexguard run --lock futex-either");
	}
	for (unsigned i = 0; opt.spin_us >= 0 && i < opt.locks; i++)
		if (!set_spin || set_spin(&lock_of(i)->m, (uint32_t)(opt.spin_us * 1000)))
			fail(
			    "-S needs a lock that spins for a time of its own: flexguard run --lock spin-park");
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
		if (opt.units)
			sema_init(&lock_of(i)->sema, opt.units, opt.fair_share > 0, opt.processes);
		else if (opt.rw)
			pthread_rwlock_init(&lock_of(i)->rw, &rw);
		else
			pthread_mutex_init(&lock_of(i)->m, &m);
	}
}

static void start(struct task *t)
{
	pid_t pid;

	if (!opt.processes) {
		if (pthread_create(&t->id, NULL, run_task, t))
			fail("cannot make %u threads", opt.tasks);
		return;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* none goes on when the parent was ended */
		for (unsigned i = 0; i < opt.regions; i++)
			map_region_again(&region[i]);
		run_task(t);
		_exit(0);
	}
	if (pid < 0)
		fail("cannot make %u processes", opt.tasks);
	t->pid = pid; /* by the parent only: the child shares *t and has 0 */
}

static void take_loops(uint64_t *loops)
{
	for (unsigned i = 0; i < opt.tasks; i++)
		loops[i] = __atomic_load_n(&shared->task[i].loops, __ATOMIC_RELAXED);
}

static bool report(const uint64_t *a, const uint64_t *b, double ms)
{
	uint64_t total = 0, tried = 0, contended = 0, intrusions = 0, runs[RUNS] = {0}, longest = 0;
	double mean, variance = 0;
	char more[64] = "";

	for (unsigned i = 0; i < opt.tasks; i++) {
		total += b[i] - a[i];
		tried += shared->task[i].tried;
		contended += shared->task[i].contended;
		intrusions += shared->task[i].intrusions;
	}
	mean = (double)total / opt.tasks;
	for (unsigned i = 0; i < opt.tasks; i++)
		variance += ((double)(b[i] - a[i]) - mean) * ((double)(b[i] - a[i]) - mean) /
			    opt.tasks;
	for (unsigned i = 0; i < opt.locks; i++) {
		struct lock *l = lock_of(i);

		end_run(l);
		for (int k = 0; k < RUNS; k++)
			runs[k] += l->runs[k];
		if (l->longest > longest)
			longest = l->longest;
	}
	if (opt.contention)
		snprintf(more, sizeof(more),
			 opt.json ? ", \"contention\": %.4f" : "contention     %.4f\n",
			 tried ? (double)contended / (double)tried : 0);
	printf(
	    opt.json ?
		"{\"tasks\": %u, \"per_ms\": %.6f, \"cv\": %.4f, \"runs\": [%llu, %llu, %llu, %llu], "
		"\"longest_run\": %llu, \"window_ms\": %.1f%s, \"check\": %s}\n" :
		"tasks          %u\nloops/ms       %.2f\ncoefficient of variation %.4f\nruns of 1, 2, 3, more: %llu %llu "
		"%llu %llu, longest %llu\nwindow (ms)    %.0f\n%smutual exclusion %s\n",
	    opt.tasks, (double)total / ms, mean > 0 ? sqrt(variance) / mean : 0,
	    (unsigned long long)runs[0], (unsigned long long)runs[1], (unsigned long long)runs[2],
	    (unsigned long long)runs[3], (unsigned long long)longest, ms, more,
	    opt.json ? (intrusions ? "false" : "true") : (intrusions ? "VIOLATED" : "held"));
	return !intrusions;
}

static void usage(FILE *f)
{
	fputs(
	    "usage: ulockflex [options]\n"
	    "  -t N         tasks (2)\n"
	    "  -p           tasks are processes; default: threads\n"
	    "  -l N         locks (1), to which the tasks are dealt out\n"
	    "  -r MEMORY    where the locks are: mmap (anonymous, shared; the default), shmat or file; of the last\n"
	    "               two each process has a mapping of its own\n"
	    "  -R N         regions of it (1), to which the locks are dealt out\n"
	    "  -H US        mean time that a lock is held (5)\n"
	    "  -N US        mean time that it is not (5)\n"
	    "  -s SHARE     reader-writer locks, and this share of the loops reads (0 to 1)\n"
	    "  -c UNITS     general semaphores with so many units; -f 1: fair ones. Needs flexguard run --lock ulock\n"
	    "  -f SHARE     this share of the releases is fair (0); needs flexguard run --lock futex-either\n"
	    "  -S US        how long the waiters of these locks spin, in place of FLEXGUARD_SPIN_NS; needs flexguard run\n"
	    "               --lock spin-park, futex-fair-spin, ulock-spin or ulock-fair-spin\n"
	    "  -n           no locks: what the loop does without\n"
	    "  -C           measure contention: the share of loops that find their lock held\n"
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

	while ((c = getopt(argc, argv, "t:pl:r:R:H:N:s:c:f:S:nCd:w:u:jh")) != -1) {
		switch (c) {
		case 't': opt.tasks = (unsigned)number(optarg, 1, 100000); break;
		case 'p': opt.processes = true; break;
		case 'l': opt.locks = (unsigned)number(optarg, 1, 1e6); break;
		case 'r': opt.memory = memory_of(optarg); break;
		case 'R': opt.regions = (unsigned)number(optarg, 1, REGIONS); break;
		case 'c': opt.units = (unsigned)number(optarg, 1, ZOO_SEMA_MAX); break;
		case 'f': opt.fair_share = number(optarg, 0, 1); break;
		case 'S': opt.spin_us = number(optarg, 0, 4e6); break;
		case 'C': opt.contention = true; break;
		case 'H': opt.lht_us = number(optarg, 0, 1e6); break;
		case 'N': opt.nlht_us = number(optarg, 0, 1e6); break;
		case 's':
			opt.rw = true;
			opt.read_share = number(optarg, 0, 1);
			break;
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
	if (opt.units && (opt.rw || opt.spin_us >= 0 || (opt.fair_share > 0 && opt.fair_share < 1)))
		fail(
		    "-c makes semaphores, without -s and -S; all their releases are fair (-f 1) or none");
	if (opt.rw && (opt.fair_share > 0 || opt.spin_us >= 0))
		fail("-f and -S are of mutexes, -s makes reader-writer locks: leave one out");
}

int main(int argc, char **argv)
{
	uint64_t *a, *b, t0, t1;

	parse(argc, argv);
	if (!opt.units_per_us)
		opt.units_per_us = calibrate_units_per_us();
	shared = shared_memory(sizeof(*shared));
	for (unsigned i = 0; i < opt.regions; i++)
		make_region(&region[i], opt.memory,
			    (opt.locks + opt.regions - 1) / opt.regions * sizeof(struct lock));
	shared->task = shared_memory(opt.tasks * sizeof(struct task));
	a = calloc(opt.tasks, sizeof(*a));
	b = calloc(opt.tasks, sizeof(*b));
	*(void **)&unlock_fairly = dlsym(RTLD_DEFAULT, "zoo_mutex_unlock_fairly");
	*(void **)&set_spin = dlsym(RTLD_DEFAULT, "zoo_mutex_spin");
	*(void **)&sema_init = dlsym(RTLD_DEFAULT, "zoo_sema_init");
	*(void **)&sema_down = dlsym(RTLD_DEFAULT, "zoo_sema_down");
	*(void **)&sema_trydown = dlsym(RTLD_DEFAULT, "zoo_sema_trydown");
	*(void **)&sema_up = dlsym(RTLD_DEFAULT, "zoo_sema_up");
	if (opt.units && !(sema_init && sema_down && sema_trydown && sema_up))
		fail("-c needs the zoo's library: flexguard run --lock ulock");
	make_locks();
	check_locks();
	for (unsigned i = 0; i < opt.tasks; i++) {
		shared->task[i].nr = i;
		shared->task[i].seed = i * 0x9e3779b97f4a7c15u + 1;
		start(&shared->task[i]);
	}
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	__atomic_store_n(&shared->measuring, 1, __ATOMIC_RELAXED);
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
		else if (waitpid(shared->task[i].pid, &status, 0) < 0 || status)
			fail("a task ended with status %#x: no result", status);
	}
	return !report(a, b, (double)(t1 - t0) / 1e6);
}
