/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer locks, spinlocks and semaphores.  A plain pthread program: the
 * same binary runs on glibc's and, under LD_PRELOAD, on others.
 *
 *   ./sync_bench -m rwlock -t 4 -p 100      N threads, 100 of 1000 sections write: sections/ms
 *   ./sync_bench -m spin -t 4 -c 1000       N threads, 1 us inside: sections/ms
 *   ./sync_bench -m sem -t 4 -c 1000        the same with a semaphore of one, as a lock
 *   ./sync_bench -m pingpong                two semaphores, 2 threads take turns: ns from one to
 *                                           the other, with the work of -c
 *   ./sync_bench -m pingpong -s             ns from before the one posts until the other has not to
 *                                           wait any more, by the clock: without the work
 *   ./sync_bench -m queue -t 4              4 producers, 4 consumers, 16 places: items/ms
 *
 * What the objects guard is checked; if something is wrong, the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pinned.h"
#include "work.h"

#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_THREADS = 1024, PLACES = 16 }; /* of the queue: not varied */
static const char *const modes[] = {"rwlock", "spin", "pingpong", "queue", "sem", NULL};
enum mode { RWLOCK, SPIN, PINGPONG, QUEUE, SEM };

struct thread {
	uint64_t done;	    /* read by main at any time */
	uint64_t passed_ns; /* -s: from the other's posts to the ends of its waits; also main's */
	uint64_t before, writes, sink, random;
	pthread_t id;
	unsigned nr;
	bool wrong;
} OWN_LINES;

static struct {
	unsigned threads, per_million;
	double seconds, warm_up, inside_ns, outside_ns, units_per_us;
	enum mode mode;
	bool json, pinned, stamped;
} opt = {.threads = 2, .seconds = 1.0, .warm_up = 0.1};

static struct thread threads[MAX_THREADS];
static uint64_t inside_units, outside_units;
static bool stop;

static struct {
	pthread_rwlock_t rwlock;
	pthread_spinlock_t spin;
} locks OWN_LINES = {.rwlock = PTHREAD_RWLOCK_INITIALIZER};

static struct {
	volatile uint64_t first, last; /* equal while nobody writes */
} guarded OWN_LINES;

static sem_t full OWN_LINES, empty OWN_LINES;

static struct {
	uint64_t ns; /* whose turn it is has it from who wrote it: the semaphores order that */
} posted OWN_LINES;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void count(struct thread *t)
{
	__atomic_store_n(&t->done, t->done + 1, __ATOMIC_RELAXED);
}

static void write_inside(struct thread *t)
{
	uint64_t before = guarded.first;

	guarded.first = before + 1;
	t->sink = work(inside_units, t->sink);
	t->wrong |= guarded.last != before;
	guarded.last = before + 1;
	t->writes++;
}

static void read_inside(struct thread *t)
{
	uint64_t before = guarded.first;

	t->sink = work(inside_units, t->sink);
	t->wrong |= guarded.last != before;
}

static unsigned dice(struct thread *t)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(t->random >> 33) % 1000000;
}

static void *run_rwlock(void *arg)
{
	struct thread *t = arg;

	while (!stopped()) {
		if (dice(t) < opt.per_million) {
			pthread_rwlock_wrlock(&locks.rwlock);
			write_inside(t);
		} else {
			pthread_rwlock_rdlock(&locks.rwlock);
			read_inside(t);
		}
		pthread_rwlock_unlock(&locks.rwlock);
		t->sink = work(outside_units, t->sink);
		count(t);
	}
	return NULL;
}

static void *run_spin(void *arg)
{
	struct thread *t = arg;

	while (!stopped()) {
		pthread_spin_lock(&locks.spin);
		write_inside(t);
		pthread_spin_unlock(&locks.spin);
		t->sink = work(outside_units, t->sink);
		count(t);
	}
	return NULL;
}

static void pass(sem_t *from, sem_t *to, struct thread *t)
{
	while (sem_wait(from))
		;
	t->sink = work(inside_units, t->sink);
	count(t);
	sem_post(to);
}

/* The work is no part of what is measured, however long it takes; a read of the clock is. */
static void pass_stamped(sem_t *from, sem_t *to, struct thread *t)
{
	while (sem_wait(from))
		;
	if (posted.ns)
		__atomic_store_n(&t->passed_ns, t->passed_ns + now_ns() - posted.ns,
				 __ATOMIC_RELAXED);
	t->sink = work(inside_units, t->sink);
	count(t);
	posted.ns = now_ns();
	sem_post(to);
}

/* The end sends both home: each posts once more than it has waited. */
static void *run_pingpong(void *arg)
{
	void (*turn)(sem_t *, sem_t *, struct thread *) = opt.stamped ? pass_stamped : pass;
	struct thread *t = arg;

	while (!stopped())
		turn(t->nr ? &full : &empty, t->nr ? &empty : &full, t);
	sem_post(t->nr ? &empty : &full);
	return NULL;
}

static void *run_queue(void *arg)
{
	struct thread *t = arg;
	bool consumer = t->nr % 2;

	while (!stopped())
		pass(consumer ? &full : &empty, consumer ? &empty : &full, t);
	/* Whoever still waits on either side gets on. */
	for (unsigned i = 0; i < 2 * opt.threads; i++) {
		sem_post(&full);
		sem_post(&empty);
	}
	return NULL;
}

static void *run_sem(void *arg)
{
	struct thread *t = arg;

	while (!stopped()) {
		while (sem_wait(&empty))
			;
		write_inside(t);
		sem_post(&empty);
		t->sink = work(outside_units, t->sink);
		count(t);
	}
	return NULL;
}

static uint64_t done_now(unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		if (opt.mode != QUEUE || i % 2)
			sum += __atomic_load_n(&threads[i].done, __ATOMIC_RELAXED);
	return sum;
}

static uint64_t passed_now(void)
{
	return __atomic_load_n(&threads[0].passed_ns, __ATOMIC_RELAXED) +
	       __atomic_load_n(&threads[1].passed_ns, __ATOMIC_RELAXED);
}

/* What the thread had that had least since then, by an equal share. */
static double least_share(unsigned n)
{
	uint64_t sum = 0, least = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		uint64_t done = __atomic_load_n(&threads[i].done, __ATOMIC_RELAXED) -
				threads[i].before;

		sum += done;
		if (done < least)
			least = done;
	}
	return sum ? (double)least * n / (double)sum : 0;
}

static double cpu_ms(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e3 +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e3;
}

static int usage(void)
{
	fprintf(
	    stderr,
	    "usage: sync_bench [-m rwlock|spin|sem|pingpong|queue] [-t THREADS] [-p WRITES] [-c NS] [-o NS]\n"
	    "                  [-d SECONDS] [-w WARM-UP] [-u UNITS] [-s] [-P] [-j]\n"
	    "  -p  rwlock: writing sections in 1000 (0), as 0.5\n"
	    "  -c  work inside (0)   -o  work outside (0)\n"
	    "  -s  pingpong: only from the post to the end of the other's wait\n"
	    "  -P  each thread on a CPU of its own, in turn\n"
	    "  -u  units of work in a microsecond (default: measured now)\n");
	return 2;
}

/* How many threads run; 0: it cannot be done. */
static unsigned parse(int argc, char **argv)
{
	unsigned n;
	int c;

	while ((c = getopt(argc, argv, "m:t:p:c:o:d:w:u:sPj")) != -1) {
		switch (c) {
		case 'm':
			for (n = 0; modes[n] && strcmp(modes[n], optarg); n++)
				;
			if (!modes[n])
				return 0;
			opt.mode = (enum mode)n;
			break;
		case 't': opt.threads = (unsigned)number(optarg, 0, 1e9); break;
		case 'p': opt.per_million = (unsigned)(number(optarg, 0, 1000) * 1000); break;
		case 'c': opt.inside_ns = number(optarg, 0, 1e12); break;
		case 'o': opt.outside_ns = number(optarg, 0, 1e12); break;
		case 'd': opt.seconds = number(optarg, 0, 1e12); break;
		case 'w': opt.warm_up = number(optarg, 0, 1e12); break;
		case 'u': opt.units_per_us = number(optarg, 0, 1e12); break;
		case 's': opt.stamped = true; break;
		case 'P': opt.pinned = true; break;
		case 'j': opt.json = true; break;
		default: return 0;
		}
	}
	n = opt.mode == QUEUE ? 2 * opt.threads : opt.mode == PINGPONG ? 2 : opt.threads;
	if (opt.stamped && opt.mode != PINGPONG)
		return 0;
	return n <= MAX_THREADS && optind == argc ? n : 0;
}

static void report(double result, double least, double cpu, double ms, bool wrong)
{
	if (opt.json)
		printf("{\"mode\": \"%s\", \"threads\": %u, \"result\": %.6f, \"least\": %.3f, "
		       "\"cpu_ms\": %.1f, \"window_ms\": %.1f, \"check\": %s}\n",
		       modes[opt.mode], opt.threads, result, least, cpu, ms,
		       wrong ? "false" : "true");
	else
		printf("%s, %u threads: %.1f %s, %.2f CPUs, %s\n", modes[opt.mode], opt.threads,
		       result,
		       opt.mode == PINGPONG ? "ns from one to the other" :
		       opt.mode == QUEUE    ? "items/ms" :
					      "sections/ms",
		       cpu / ms, wrong ? "BROKEN" : "held");
}

int main(int argc, char **argv)
{
	static void *(*const run[])(void *) = {run_rwlock, run_spin, run_pingpong, run_queue,
					       run_sem};
	uint64_t before, after, passed, t0, t1, writes = 0;
	unsigned n = parse(argc, argv);
	bool wrong = false;
	double cpu, ms, result, least;

	if (!n)
		return usage();
	if (opt.units_per_us <= 0)
		opt.units_per_us = calibrate_units_per_us();
	inside_units = (uint64_t)(opt.inside_ns * opt.units_per_us / 1000);
	outside_units = (uint64_t)(opt.outside_ns * opt.units_per_us / 1000);
	pthread_spin_init(&locks.spin, PTHREAD_PROCESS_PRIVATE);
	sem_init(&full, 0, 0);
	sem_init(&empty, 0, opt.mode == QUEUE ? PLACES : 1);
	for (unsigned i = 0; i < n; i++) {
		threads[i].nr = i;
		threads[i].random = i + 1;
		if (pthread_create(&threads[i].id, pinned(opt.pinned, i), run[opt.mode],
				   &threads[i]))
			abort();
	}
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	cpu = cpu_ms();
	before = done_now(n);
	passed = passed_now();
	for (unsigned i = 0; i < n; i++)
		threads[i].before = __atomic_load_n(&threads[i].done, __ATOMIC_RELAXED);
	t0 = now_ns();
	sleep_ns((uint64_t)(opt.seconds * 1e9));
	after = done_now(n);
	passed = passed_now() - passed;
	t1 = now_ns();
	least = least_share(n);
	cpu = cpu_ms() - cpu;
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(threads[i].id, NULL);
		wrong |= threads[i].wrong;
		writes += threads[i].writes;
	}
	wrong |= guarded.first != writes || guarded.last != writes;
	ms = (double)(t1 - t0) / 1e6;
	result = (double)(after - before) / ms;
	if (opt.mode == PINGPONG && after > before) /* else 0: how long a turn takes is not known */
		result = opt.stamped ? (double)passed / (double)(after - before) : 1e6 / result;
	report(result, least, cpu, ms, wrong);
	return wrong;
}
