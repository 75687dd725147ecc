/* SPDX-License-Identifier: MIT */
/*
 * Condition variables: how long a wake-up takes, and what they carry.  A plain
 * pthread program: the same binary runs on glibc's and, under LD_PRELOAD, on
 * others.
 *
 *   ./cond_bench -m pingpong           2 threads take turns: ns from one to the other
 *   ./cond_bench -m queue -t 4         4 producers, 4 consumers, a queue of 16 places: items/ms
 *   ./cond_bench -m broadcast -t 8     a leader sends 8 followers off and waits for them: us a
 *                                      round
 *
 * Everybody checks what he gets; at the end all must add up, or the exit status is 1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hogs.h"
#include "pinned.h"
#include "work.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PLACES = 16, MAX_THREADS = 1024 }; /* of the queue: not varied */

static struct {
	unsigned threads, hogs;
	double seconds, warm_up, work_ns, units_per_us;
	bool outside, json, pinned;
} opt = {.threads = 2, .seconds = 1.0, .warm_up = 0.1};

static uint64_t work_units;
static uint64_t sink;

/* Guarded by `lock`; `rounds` and `stop` are also read without it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t one, other;
	unsigned turn, arrived;
	uint64_t place[PLACES], filled, head;
	uint64_t produced, consumed, sum_in, sum_out;
	uint64_t rounds;
	bool stop, wrong;
} shared OWN_LINES = {.lock = PTHREAD_MUTEX_INITIALIZER,
		      .one = PTHREAD_COND_INITIALIZER,
		      .other = PTHREAD_COND_INITIALIZER};

static bool stopped(void)
{
	return __atomic_load_n(&shared.stop, __ATOMIC_RELAXED);
}

static void lock(void)
{
	if (pthread_mutex_lock(&shared.lock))
		abort();
}

static void unlock(void)
{
	if (pthread_mutex_unlock(&shared.lock))
		abort();
}

static void wait_on(pthread_cond_t *c)
{
	if (pthread_cond_wait(c, &shared.lock))
		abort();
}

static void count_round(void)
{
	__atomic_store_n(&shared.rounds, shared.rounds + 1, __ATOMIC_RELAXED);
}

/* Signals `c`, holding the mutex or (-o) having released it; returns without it. */
static void unlock_and_signal(pthread_cond_t *c)
{
	if (!opt.outside)
		pthread_cond_signal(c);
	unlock();
	if (opt.outside)
		pthread_cond_signal(c);
}

static void busy_work(void)
{
	if (work_units)
		__atomic_store_n(&sink, work(work_units, 1), __ATOMIC_RELAXED);
}

/* ---- ping-pong ----------------------------------------------------------------- */

static void *player(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	pthread_cond_t *mine = me ? &shared.other : &shared.one,
		       *others = me ? &shared.one : &shared.other;
	bool last;

	do {
		lock();
		while (shared.turn != me)
			wait_on(mine);
		shared.turn = !me;
		count_round();
		last = stopped();
		unlock_and_signal(others);
		busy_work();
	} while (!last);
	return NULL;
}

/* ---- queue --------------------------------------------------------------------- */

static void *producer(void *arg)
{
	uint64_t item = 1 + (uintptr_t)arg;
	bool last;

	do {
		lock();
		while (shared.filled == PLACES)
			wait_on(&shared.other);
		shared.place[(shared.head + shared.filled++) % PLACES] = item;
		shared.produced++;
		shared.sum_in += item;
		last = stopped();
		unlock_and_signal(&shared.one);
		item += 1000;
		busy_work();
	} while (!last);
	return NULL;
}

static void *consumer(void *arg)
{
	uint64_t item;

	do {
		lock();
		while (!shared.filled)
			wait_on(&shared.one);
		item = shared.place[shared.head++ % PLACES];
		shared.filled--;
		if (item) { /* 0: the end */
			shared.consumed++;
			shared.sum_out += item;
			count_round();
		}
		unlock_and_signal(&shared.other);
		if (item)
			busy_work();
	} while (item);
	return NULL;
}

/* ---- broadcast ----------------------------------------------------------------- */

static void *follower(void *arg)
{
	uint64_t seen = 0;
	bool last;

	do {
		lock();
		while (shared.produced == seen)
			wait_on(&shared.one);
		if (shared.produced != ++seen)
			shared.wrong = true; /* the leader did not wait for us */
		last = stopped() && shared.turn;
		if (++shared.arrived == opt.threads)
			unlock_and_signal(&shared.other);
		else
			unlock();
		busy_work();
	} while (!last);
	return NULL;
}

static void *leader(void *arg)
{
	do {
		lock();
		while (shared.arrived != opt.threads)
			wait_on(&shared.other);
		shared.arrived = 0;
		shared.produced++;
		shared.turn = stopped(); /* this is the last round */
		count_round();
		if (!opt.outside)
			pthread_cond_broadcast(&shared.one);
		unlock();
		if (opt.outside)
			pthread_cond_broadcast(&shared.one);
		busy_work();
	} while (!shared.turn);
	return NULL;
}

/* ---- one run -------------------------------------------------------------------- */

struct mode {
	const char *name, *unit;
	unsigned threads; /* fixed; 0: -t */
	void *(*first)(void *), *(*second)(void *);
	double unit_ns; /* a round in so many ns is 1; negative: rounds in so many ns */
};

static const struct mode modes[] = {
    {"pingpong", "ns a hand-over", 1, player, player, 1},
    {"queue", "items/ms", 0, producer, consumer, -1e6},
    {"broadcast", "us a round", 0, leader, follower, 1e3},
};

static void start(pthread_t *id, void *(*f)(void *), uintptr_t arg)
{
	static unsigned nth;
	int err = pthread_create(id, pinned(opt.pinned, nth++), f, (void *)arg);

	if (err) {
		fprintf(stderr, "cond_bench: pthread_create: %s\n", strerror(err));
		exit(2);
	}
}

/* Items of 0 send the consumers home, when no producer is left. */
static void send_home(unsigned consumers)
{
	while (consumers--) {
		lock();
		while (shared.filled == PLACES)
			wait_on(&shared.other);
		shared.place[(shared.head + shared.filled++) % PLACES] = 0;
		pthread_cond_signal(&shared.one);
		unlock();
	}
}

static bool adds_up(void)
{
	return !shared.wrong && !shared.filled &&
	       (shared.consumed == 0 ||
		(shared.consumed == shared.produced && shared.sum_in == shared.sum_out));
}

static double cpu_ms(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e3 +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e3;
}

static void run(const struct mode *m)
{
	static pthread_t first[MAX_THREADS], second[MAX_THREADS];
	static pid_t hogs[MAX_HOGS];
	unsigned n = m->threads ? m->threads : opt.threads, leaders = m->first == leader ? 1 : n;
	uint64_t rounds, t0, ns;
	double cpu, result;
	bool ok;

	start_hogs(hogs, opt.hogs);
	shared.arrived = n;
	for (unsigned i = 0; i < n; i++)
		start(&second[i], m->second, i + (m->first == player));
	for (unsigned i = 0; i < leaders; i++)
		start(&first[i], m->first, i);
	sleep_ns((uint64_t)(opt.warm_up * 1e9));
	cpu = cpu_ms();
	t0 = now_ns();
	rounds = __atomic_load_n(&shared.rounds, __ATOMIC_RELAXED);
	sleep_ns((uint64_t)(opt.seconds * 1e9));
	ns = now_ns() - t0;
	rounds = __atomic_load_n(&shared.rounds, __ATOMIC_RELAXED) - rounds;
	cpu = cpu_ms() - cpu;
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < leaders; i++)
		pthread_join(first[i], NULL);
	if (m->second == consumer)
		send_home(n);
	for (unsigned i = 0; i < n; i++)
		pthread_join(second[i], NULL);
	end_hogs(hogs, opt.hogs);
	ok = adds_up();
	/* 0: no round ended; how long one takes is not known. */
	if (m->unit_ns < 0)
		result = (double)rounds * -m->unit_ns / (double)ns;
	else
		result = rounds ? (double)ns / (double)rounds / m->unit_ns : 0;
	if (opt.json)
		printf(
		    "{\"mode\": \"%s\", \"threads\": %u, \"result\": %.6f, \"rounds\": %llu, \"window_ms\": %.3f, "
		    "\"cpu_ms\": %.1f, \"check\": %s}\n",
		    m->name, n, result, (unsigned long long)rounds, (double)ns / 1e6, cpu,
		    ok ? "true" : "false");
	else
		printf("%-10s %4u: %12.1f %s, %.2f CPUs, %s\n", m->name, n, result, m->unit,
		       cpu * 1e6 / (double)ns, ok ? "adds up" : "DOES NOT ADD UP");
	if (!ok)
		exit(1);
}

static void usage(FILE *f)
{
	fputs("usage: cond_bench -m MODE [options]\n"
	      "  -m MODE      pingpong, queue or broadcast\n"
	      "  -t N         producers and consumers each; followers (2)\n"
	      "  -b N         busy processes beside the benchmark (0)\n"
	      "  -c NS        busy work after each round, without the mutex (0)\n"
	      "  -o           signal and broadcast after the mutex has been released\n"
	      "  -P           each thread on a CPU of its own, in turn\n"
	      "  -d SECONDS   measuring window (1)\n"
	      "  -w SECONDS   warm-up before it (0.1)\n"
	      "  -u N         work units in a microsecond; without: calibrate at start\n"
	      "  -j           one line of JSON\n",
	      f);
	exit(f == stdout ? 0 : 2);
}

int main(int argc, char **argv)
{
	const struct mode *m = NULL;
	int c;

	while ((c = getopt(argc, argv, "m:t:b:c:od:w:u:Pjh")) != -1) {
		switch (c) {
		case 'm':
			for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
				if (!strcmp(optarg, modes[i].name))
					m = &modes[i];
			break;
		case 't': opt.threads = (unsigned)number(optarg, 1, MAX_THREADS); break;
		case 'b': opt.hogs = (unsigned)number(optarg, 0, MAX_HOGS); break;
		case 'c': opt.work_ns = number(optarg, 0, 1e9); break;
		case 'o': opt.outside = true; break;
		case 'd': opt.seconds = number(optarg, 1e-3, 1e6); break;
		case 'w': opt.warm_up = number(optarg, 0, 1e6); break;
		case 'u': opt.units_per_us = number(optarg, 1, 1e6); break;
		case 'P': opt.pinned = true; break;
		case 'j': opt.json = true; break;
		default: usage(c == 'h' ? stdout : stderr);
		}
	}
	if (!m || optind != argc)
		usage(stderr);
	if (opt.work_ns > 0) {
		if (opt.units_per_us <= 0)
			opt.units_per_us = calibrate_units_per_us();
		work_units = (uint64_t)(opt.work_ns * opt.units_per_us / 1e3 + 0.5);
	}
	run(m);
	return 0;
}
