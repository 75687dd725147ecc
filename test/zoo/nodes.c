/* SPDX-License-Identifier: MIT */
/*
 * Queue nodes of the zoo's locks (src/zoo/node.c).
 *
 *	nodes threads	 20,000 threads, one after the other, leave no memory behind
 *	nodes destroyed	 nor do 50,000 mutexes
 *	nodes ended	 nor do 1,500 threads that lock in a destructor, or leave a mutex to others
 *	nodes migrate N	 a thread that always begins a queue and one that always ends it; N: word of
 *                       the mutex
 *			 that is the queue's tail
 *	nodes handlers	 no node is anywhere twice, though a signal handler locks after any
 *                       instruction of a lock
 */
#define STEP_OR_ELSE
#include "../tools/step.h"

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>

#include "zoo/zoo.h"

static long resident_kb(void)
{
	char line[100] = "";
	FILE *f = fopen("/proc/self/statm", "r");
	long pages;

	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	CHECK_EQ(sscanf(line, "%*d %ld", &pages), 1);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;

static void *lock_once(void *arg)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	(void)arg;
	lock(&common);
	lock(&own);
	unlock(&common);
	unlock(&own);
	return NULL;
}

static void threads(void)
{
	long before = 0, after;

	for (int i = 0; i < 20000; i++) {
		if (i == 500)
			before = resident_kb();
		join(start(lock_once, NULL));
	}
	after = resident_kb();
	if (after > before + 4096)
		check_say("%ld KB after 500 threads, %ld after 20,000", before, after);
	CHECK(after <= before + 4096);
}

static void destroyed(void)
{
	long before = 0, after;

	for (int i = 0; i < 50000; i++) { /* 3 MB of nodes */
		pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

		if (i == 500)
			before = resident_kb();
		lock(&own);
		unlock(&own);
		CHECK_EQ(pthread_mutex_destroy(&own), 0);
	}
	after = resident_kb();
	if (after > before + 1024)
		check_say("%ld KB after 500 mutexes, %ld after 50,000", before, after);
	CHECK(after <= before + 1024);
}

static pthread_key_t key;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;

static void locks_late(void *arg)
{
	lock_once(arg);
}

static void *leaves_it(void *late)
{
	if (late)
		CHECK_EQ(pthread_setspecific(key, late), 0);
	else
		lock(&left);
	return NULL;
}

/* With 1,024 descriptors each. */
static void ended(void)
{
	struct rlimit few = {1024, 1024};

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ(pthread_key_create(&key, locks_late), 0);
	for (int i = 0; i < 1500; i++) {
		join(start(leaves_it, i % 2 ? &key : NULL));
		if (i % 2 == 0)
			unlock(&left);
	}
}

#define ROUNDS 40000 /* 2.5 MB of nodes */
/* Fewer on a machine so busy that each costs time slices: FIFO locks are handed to who is off. */
#define MOST_SECONDS 30
#define NO_MORE	     0 /* of turn */

static struct zoo_mutex migrating;
static unsigned tail_word;
static int turn = -ROUNDS; /* of the second, in this round; before the first nobody's */

static void *tail(void)
{
	return __atomic_load_n(&migrating.s.p[tail_word], __ATOMIC_ACQUIRE);
}

static void *second(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		int now;

		while ((now = LOAD(turn)) != i) {
			if (now == NO_MORE)
				return NULL;
			sched_yield();
		}
		lock((pthread_mutex_t *)&migrating);
		unlock((pthread_mutex_t *)&migrating);
		STORE(turn, -i);
	}
	return NULL;
}

static void migrate(void)
{
	long long end = clock_ns(CLOCK_MONOTONIC) + MOST_SECONDS * 1000000000ll;
	long before = LONG_MAX / 2, after;
	pthread_t t = start(second, NULL);
	void *mine;

	for (int i = 1; i <= ROUNDS && clock_ns(CLOCK_MONOTONIC) < end; i++) {
		if (i == 500)
			before = resident_kb();
		lock((pthread_mutex_t *)&migrating);
		mine = tail();
		STORE(turn, i);
		/* Not for ever: a hybrid lock that has switched has its waiters elsewhere. */
		for (int n = 0; tail() == mine && n < 200; n++)
			sched_yield();
		unlock((pthread_mutex_t *)&migrating);
		while (LOAD(turn) != -i)
			sched_yield();
	}
	STORE(turn, NO_MORE);
	join(t);
	after = resident_kb();
	if (after > before + 1024)
		check_say("%ld KB after 500 rounds, %ld after all", before, after);
	CHECK(after <= before + 1024);
}

#ifdef STEP_SUPPORTED
#define MANY 50
static struct zoo_mutex stepped, b, c, many[MANY];

/* Not in the order of a stack. */
static void lock_two(void)
{
	lock((pthread_mutex_t *)&b);
	lock((pthread_mutex_t *)&c);
	unlock((pthread_mutex_t *)&b);
	unlock((pthread_mutex_t *)&c);
}

/* After one of the instructions: two in a row may mend what each of them breaks. */
static long when;

static void handler(void)
{
	if (step_count == when)
		lock_two();
}

static void all_distinct(void)
{
	for (int i = 0; i < MANY; i++)
		lock((pthread_mutex_t *)&many[i]);
	for (int i = 0; i < MANY; i++) {
		CHECK(!many[i].node || many[i].node != stepped.node || !stepped.owner);
		for (int k = 0; many[i].node && k < i; k++)
			CHECK(many[i].node != many[k].node);
	}
	for (int i = 0; i < MANY; i++)
		unlock((pthread_mutex_t *)&many[i]);
}

static void handlers(void)
{
	lock_two();
	for (when = 1; when == 1 || step_count >= when; when++) {
		step_begin(handler);
		pthread_mutex_lock((pthread_mutex_t *)&stepped);
		step_end();
		all_distinct();
		step_begin(handler);
		pthread_mutex_unlock((pthread_mutex_t *)&stepped);
		step_end();
		all_distinct();
	}
	CHECK(when > 20);
}
#else
static void handlers(void)
{
	check_skip("no single steps on this architecture");
}
#endif

int main(int argc, char **argv)
{
	check_begin(argv[0], 90);
	if (argc == 2 && !strcmp(argv[1], "threads"))
		threads();
	else if (argc == 2 && !strcmp(argv[1], "destroyed"))
		destroyed();
	else if (argc == 2 && !strcmp(argv[1], "ended"))
		ended();
	else if (argc == 3 && !strcmp(argv[1], "migrate")) {
		tail_word = (unsigned)atoi(argv[2]);
		migrate();
	} else if (argc == 2 && !strcmp(argv[1], "handlers"))
		handlers();
	else
		return CHECK_SETUP;
	return 0;
}
