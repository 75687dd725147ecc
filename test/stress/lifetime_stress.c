/* SPDX-License-Identifier: MIT */
/*
 * Locks that are destroyed, and their memory given away, as soon as POSIX allows:
 * by the next owner, while the last unlock may still be on its way out.  What
 * touches the lock after its release meets an unmapped page or spoils a pattern.
 *
 *   -t N  threads (default 4)   -d S  seconds   -s N  seed   -w S  hang limit
 *   -m M  unmap: a page per object, unmapped at once
 *         reuse: the memory is filled with a pattern and checked, then becomes another lock
 *         cond:  the object has a condition variable too, destroyed right after its broadcast
 */
#include "../tools/progress.h"

#include <getopt.h>
#include <sched.h>
#include <sys/mman.h>

#define MAX_THREADS 64
#define PAGE	    4096
#define PATTERN	    0xa5

struct object {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int refs, arrived; /* guarded by mutex */
	int inside;
};

static int n_threads = 4;
static long run_us = 2000000;
static enum { UNMAP, REUSE, COND } mode = UNMAP;
static int stop;
static struct object *mailbox[MAX_THREADS];
static unsigned char *pool[8]; /* of the main thread: pages in turn */
static long rounds;
static int gone; /* objects destroyed */

static void *page_new(void)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* By the last owner.  The lock is free and nobody else may want it. */
static void dispose(struct object *o)
{
	if (mode == COND)
		CHECK_EQ(pthread_cond_destroy(&o->cond), 0);
	CHECK_EQ(pthread_mutex_destroy(&o->mutex), 0);
	if (mode == REUSE)
		memset(o, PATTERN, PAGE);
	else
		CHECK_EQ(munmap(o, PAGE), 0);
	ADD(gone, 1);
}

static void use(struct object *o, uint64_t *rng)
{
	int last;

	lock(&o->mutex);
	CHECK_EQ(*(volatile int *)&o->inside, 0);
	*(volatile int *)&o->inside = 1;
	if (mode == COND) {
		if (++o->arrived == n_threads)
			CHECK_EQ(pthread_cond_broadcast(&o->cond), 0);
		*(volatile int *)&o->inside = 0;
		while (o->arrived < n_threads)
			CHECK_EQ(pthread_cond_wait(&o->cond, &o->mutex), 0);
		*(volatile int *)&o->inside = 1;
	}
	if (!rnd_below(rng, 8))
		sched_yield();
	for (volatile unsigned n = rnd_below(rng, 500); n; n--)
		;
	last = --o->refs == 0;
	*(volatile int *)&o->inside = 0;
	unlock(&o->mutex);
	if (last)
		dispose(o);
}

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed(id);

	for (;;) {
		struct object *o;

		progress_at(id, NULL);
		for (unsigned n = 0; !(o = LOAD(mailbox[id])) && !LOAD(stop); n++)
			if (n > 200)
				sched_yield();
		if (!o)
			return NULL;
		progress_at(id, "uses an object");
		STORE(mailbox[id], NULL);
		use(o, &rng);
		progress_made(id);
	}
}

static void check_pattern(unsigned char *page)
{
	for (int i = 0; i < PAGE; i++)
		CHECK_EQ(page[i], PATTERN);
}

static struct object *object_new(uint64_t *rng)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_NORMAL,
				    PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK,
				    PTHREAD_MUTEX_RECURSIVE};
	static const pthread_mutex_t init = PTHREAD_MUTEX_INITIALIZER;
	struct object *o;

	if (mode == REUSE) {
		unsigned i = (unsigned)(rounds % 8);

		if (pool[i])
			check_pattern(pool[i]); /* seven rounds later: nobody wrote */
		else
			pool[i] = page_new();
		o = (void *)pool[i];
	} else {
		o = page_new();
	}
	o->refs = n_threads;
	o->arrived = o->inside = 0;
	if (rnd_below(rng, 3))
		mutex_of_type(&o->mutex, types[rnd_below(rng, 5)]);
	else
		o->mutex = init;
	CHECK_EQ(pthread_cond_init(&o->cond, NULL), 0);
	return o;
}

int main(int argc, char **argv)
{
	pthread_t watch, t[MAX_THREADS];
	struct timespec end;
	uint64_t rng;
	int c;

	check_begin(argv[0], 10);
	while ((c = getopt(argc, argv, "t:d:s:w:m:")) != -1)
		switch (c) {
		case 't': n_threads = atoi(optarg); break;
		case 'm': mode = *optarg == 'u' ? UNMAP : *optarg == 'r' ? REUSE : COND; break;
		default:
			if (!progress_option(c, &run_us))
				_exit(CHECK_SETUP);
		}
	if (n_threads < 1 || n_threads > MAX_THREADS)
		_exit(CHECK_SETUP);
	rng = rnd_seed(77);
	watch = progress_begin(run_us);
	start_numbered(t, n_threads, 0, work);
	end = in_us(CLOCK_MONOTONIC, run_us);
	while (!is_past(CLOCK_MONOTONIC, end)) {
		struct object *o = object_new(&rng);

		rounds++;
		for (int i = 0; i < n_threads; i++)
			STORE(mailbox[i], o);
		for (int i = 0; i < n_threads; i++)
			while (LOAD(mailbox[i]))
				sched_yield();
		while (LOAD(gone) != rounds)
			sched_yield();
	}
	STORE(stop, 1);
	join_all(t, n_threads);
	progress_end(watch);
	if (mode == REUSE)
		for (int i = 0; i < 8 && pool[i]; i++)
			check_pattern(pool[i]);
	check_say("passed: %ld objects", rounds);
	return 0;
}
