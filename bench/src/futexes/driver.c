/* SPDX-License-Identifier: MIT */
/*
 * Locks and hand-overs of libraries that wait by syscall(SYS_futex, ...), each linked with this.
 *
 *   -m section  threads (-t) take the lock, work inside (-c ns) and outside (-o ns)
 *   -m ring     one thing goes round from thread to thread, each of which works (-c ns) on it
 *   -m pool     every millisecond each thread is given something to work on (-c ns)
 *
 * Prints operations a millisecond, and CPU time an operation in us; -d seconds, -u units of work in
 * a us (work.h), -b busy processes beside it.  Exit status 1: mutual exclusion was broken.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "../hogs.h"
#include "driver.h"

enum mode { SECTION, RING, POOL };

static struct {
	enum mode mode;
	unsigned threads, hogs;
	uint64_t inside, outside; /* units */
	double seconds;
} o = {.threads = 2, .seconds = 1};

static int stop;
static uint64_t count; /* by who has the lock */
static unsigned done;  /* of a pool's round */

static struct thread {
	uint64_t operations;
	pthread_t thread;
} OWN_LINES threads[MOST_PLACES];

static bool goes_on(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void inside(void)
{
	*(volatile uint64_t *)&count += 1;
	work(o.inside, 1);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	unsigned me = (unsigned)(t - threads);

	while (goes_on()) {
		if (o.mode == SECTION) {
			bench_section(inside);
			work(o.outside, 1);
		} else {
			bench_take(me);
			work(o.inside, 1);
			if (o.mode == RING)
				bench_put((me + 1) % o.threads);
			else
				__atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
		}
		t->operations++;
	}
	return NULL;
}

static double cpu_seconds(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void give_rounds(uint64_t until)
{
	while (now_ns() < until) {
		__atomic_store_n(&done, 0, __ATOMIC_RELEASE);
		for (unsigned i = 0; i < o.threads; i++)
			bench_put(i);
		sleep_ns(1000000);
		while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < o.threads)
			sleep_ns(10000);
	}
}

static void options(int argc, char **argv)
{
	double in = 5000, out = 5000, units = 0;
	int c;

	while ((c = getopt(argc, argv, "m:t:c:o:d:u:b:")) >= 0)
		switch (c) {
		case 'm':
			o.mode = !strcmp(optarg, "ring") ? RING :
				 !strcmp(optarg, "pool") ? POOL :
							   SECTION;
			break;
		case 't': o.threads = (unsigned)number(optarg, 1, MOST_PLACES); break;
		case 'c': in = number(optarg, 0, 1e9); break;
		case 'o': out = number(optarg, 0, 1e9); break;
		case 'd': o.seconds = number(optarg, 0.01, 1000); break;
		case 'u': units = number(optarg, 1, 1e6); break;
		case 'b': o.hogs = (unsigned)number(optarg, 0, MAX_HOGS); break;
		default: exit(2);
		}
	if (!units)
		units = calibrate_units_per_us();
	o.inside = (uint64_t)(in * units / 1000);
	o.outside = (uint64_t)(out * units / 1000);
}

int main(int argc, char **argv)
{
	uint64_t operations = 0, began, took;
	pid_t hogs[MAX_HOGS];
	double cpu;

	options(argc, argv);
	start_hogs(hogs, o.hogs);
	bench_begin(o.threads);
	began = now_ns();
	cpu = cpu_seconds();
	for (unsigned i = 0; i < o.threads; i++)
		if (pthread_create(&threads[i].thread, NULL, run, &threads[i]))
			abort();
	if (o.mode == RING)
		bench_put(0);
	if (o.mode == POOL)
		give_rounds(began + (uint64_t)(o.seconds * 1e9));
	else
		sleep_ns((uint64_t)(o.seconds * 1e9));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	took = now_ns() - began;
	for (unsigned i = 0; i < o.threads; i++)
		operations += __atomic_load_n(&threads[i].operations, __ATOMIC_RELAXED);
	cpu = cpu_seconds() - cpu;
	printf("%.2f %.3f\n", (double)operations * 1e6 / (double)took,
	       cpu * 1e6 / (double)(operations ? operations : 1));
	for (unsigned i = 0; i < o.threads; i++) {
		if (o.mode != SECTION) /* whoever still waits */
			bench_put(i);
	}
	operations = 0;
	for (unsigned i = 0; i < o.threads; i++) {
		pthread_join(threads[i].thread, NULL);
		operations += threads[i].operations;
	}
	end_hogs(hogs, o.hogs);
	if (o.mode == SECTION && operations != count) {
		fprintf(stderr, "%s: mutual exclusion is broken: %llu sections, %llu counted\n",
			program_invocation_short_name, (unsigned long long)operations,
			(unsigned long long)count);
		return 1;
	}
	return 0;
}
