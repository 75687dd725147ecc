/* SPDX-License-Identifier: MIT */
/*
 * Mutexes that stay glibc's, in memory that several processes share: threads and
 * processes take them in every way, threads end and processes are killed
 * (SIGKILL) with robust ones held, and the next owner has to be told.
 *
 *   -t N  threads of this process (default 4)   -c N  processes that are killed (2)
 *   -d S  seconds (2)                           -s N  seed
 *   -w S  seconds without progress that count as a hang
 */
#include "../tools/check.h"
#include "../tools/progress.h"

#include <getopt.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MAX_THREADS  64
#define MAX_CHILDREN 8

struct object {
	pthread_mutex_t mutex;

	/* guarded by mutex */
	long inside; /* who is in the section, 0 = nobody */
	long a, b;   /* equal outside of sections */
	long deaths; /* owners that died */
} __attribute__((aligned(64)));

static const struct {
	int type, robust, protocol;
} kinds[] = {
    {PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_NONE},
    {PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_NONE},
    {PTHREAD_MUTEX_ADAPTIVE_NP, 0, PTHREAD_PRIO_NONE},
    {PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT},
    /* From here on robust: these may be left behind. */
    {PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_NONE},
    {PTHREAD_MUTEX_ERRORCHECK, 1, PTHREAD_PRIO_NONE},
    {PTHREAD_MUTEX_RECURSIVE, 1, PTHREAD_PRIO_INHERIT},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], FIRST_ROBUST = 4 };

static struct shared {
	struct object o[KINDS];
	int stop;
	long orderly_changes[KINDS]; /* of the process that is not killed; written at its end */
} *s;

static struct worker {
	uint64_t rng;
	long id, changes[KINDS];
	int first; /* uses the kinds from this one on */
	int done;
} __attribute__((aligned(64))) workers[MAX_THREADS];

static int n_threads = 4, n_children = 2;
static long run_us = 2000000;

static void object_make(struct object *o, int kind)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, kinds[kind].type), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, kinds[kind].robust), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, kinds[kind].protocol), 0);
	CHECK_EQ(pthread_mutex_init(&o->mutex, &a), 0);
}

/* The section of a dead owner may have ended anywhere. */
static void repair(struct object *o, int kind)
{
	CHECK(kind >= FIRST_ROBUST);
	CHECK(o->a == o->b || o->a == o->b + 1);
	o->inside = 0;
	o->b = o->a;
	o->deaths++;
	CHECK_EQ(pthread_mutex_consistent(&o->mutex), 0);
}

static int try_to_take(struct object *o, uint64_t *rng)
{
	struct timespec ts;

	switch (rnd_below(rng, 8)) {
	case 0: return pthread_mutex_trylock(&o->mutex);
	case 1:
		ts = in_us(CLOCK_REALTIME, (long)rnd_below(rng, 200) - 20);
		return pthread_mutex_timedlock(&o->mutex, &ts);
	case 2:
		ts = in_us(CLOCK_REALTIME, (long)rnd_below(rng, 200));
		return pthread_mutex_timedlock(&o->mutex, &ts);
	case 3:
		ts = in_us(CLOCK_MONOTONIC, (long)rnd_below(rng, 100000));
		/* glibc knows only one clock there */
		return kinds[o - s->o].protocol ?
			   pthread_mutex_lock(&o->mutex) :
			   pthread_mutex_clocklock(&o->mutex, CLOCK_MONOTONIC, &ts);
	default: return pthread_mutex_lock(&o->mutex);
	}
}

static int take(struct object *o, int kind, uint64_t *rng)
{
	int r = try_to_take(o, rng);

	if (r == EBUSY || r == ETIMEDOUT)
		return 0;
	if (r == EOWNERDEAD)
		repair(o, kind);
	else
		CHECK_EQ(r, 0);
	return 1;
}

static void change(struct object *o, int kind, struct worker *w)
{
	CHECK_EQ(*(volatile long *)&o->inside, 0);
	*(volatile long *)&o->inside = w->id;
	CHECK_EQ(o->a, o->b);
	*(volatile long *)&o->a += 1;
	if (kinds[kind].type == PTHREAD_MUTEX_RECURSIVE && !rnd_below(&w->rng, 4)) {
		lock(&o->mutex);
		unlock(&o->mutex);
	}
	if (kinds[kind].type == PTHREAD_MUTEX_ERRORCHECK && !rnd_below(&w->rng, 16))
		CHECK_EQ(pthread_mutex_lock(&o->mutex), EDEADLK);
	if (!rnd_below(&w->rng, 4))
		for (volatile unsigned i = rnd_below(&w->rng, 1000); i; i--)
			;
	if (!rnd_below(&w->rng, 256))
		sleep_us(rnd_below(&w->rng, 300));
	*(volatile long *)&o->b += 1;
	CHECK_EQ(*(volatile long *)&o->inside, w->id);
	w->changes[kind]++;
}

/* Returns 1 if the thread is to end with what it holds. */
static int section(struct worker *w)
{
	int kind = w->first + (int)rnd_below(&w->rng, (unsigned)(KINDS - w->first));
	struct object *o = &s->o[kind];

	if (!take(o, kind, &w->rng))
		return 0;
	change(o, kind, w);
	if (kind >= FIRST_ROBUST && !rnd_below(&w->rng, 500))
		return 1;
	*(volatile long *)&o->inside = 0;
	unlock(&o->mutex);
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int index = (int)(w - workers);

	progress_at(index, "working");
	while (!LOAD(s->stop)) {
		if (section(w)) {
			/* The next one takes over while this one ends, holding. */
			pthread_detach(start(work, w));
			return NULL;
		}
		progress_made(index);
	}
	progress_at(index, NULL);
	STORE(w->done, 1);
	return NULL;
}

static void start_workers(int n, long id, int first)
{
	for (int i = 0; i < n; i++) {
		workers[i] = (struct worker){
		    .rng = rnd_seed((uint64_t)(id + i)), .id = id + i, .first = first};
		pthread_detach(start(work, &workers[i]));
	}
}

/* Another process, of two threads; one that is to be killed uses what is robust. */
static pid_t start_child(long id, int first)
{
	pid_t pid = check_fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check_end_after((unsigned)(run_us / 1000000) + 60);
	start_workers(2, id, first);
	for (int i = 0; i < 2; i++)
		UNTIL(LOAD(workers[i].done));
	for (int k = 0; k < KINDS; k++)
		s->orderly_changes[k] = workers[0].changes[k] + workers[1].changes[k];
	_exit(0);
}

static void kill_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static long kill_and_replace(void)
{
	struct timespec end = in_us(CLOCK_MONOTONIC, run_us);
	pid_t pid[MAX_CHILDREN];
	uint64_t rng = rnd_seed(7777);
	long n = 0;

	for (int i = 0; i < n_children; i++)
		pid[i] = start_child(1000 + 10 * n++, FIRST_ROBUST);
	while (!is_past(CLOCK_MONOTONIC, end)) {
		int i = (int)rnd_below(&rng, (unsigned)n_children);

		sleep_us(rnd_below(&rng, 20000));
		kill_child(pid[i]);
		pid[i] = start_child(1000 + 10 * n++, FIRST_ROBUST);
	}
	for (int i = 0; i < n_children; i++)
		kill_child(pid[i]);
	return n;
}

static void verify(int kind)
{
	struct object *o = &s->o[kind];
	long changes = s->orderly_changes[kind];
	int r = pthread_mutex_lock(&o->mutex);

	if (r == EOWNERDEAD)
		repair(o, kind);
	else
		CHECK_EQ(r, 0);
	for (int i = 0; i < n_threads; i++)
		changes += workers[i].changes[kind];
	CHECK_EQ(o->a, o->b);
	if (kind < FIRST_ROBUST)
		CHECK_EQ(o->a, changes);
	else
		CHECK(o->a >= changes);
	unlock(&o->mutex);
	CHECK_EQ(pthread_mutex_destroy(&o->mutex), 0);
}

int main(int argc, char **argv)
{
	long killed = 0, changes = 0, deaths = 0;
	pthread_t watch;
	pid_t orderly;
	int c;

	check_begin(argv[0], 10);
	while ((c = getopt(argc, argv, "t:c:d:s:w:")) != -1)
		switch (c) {
		case 't': n_threads = atoi(optarg); break;
		case 'c': n_children = atoi(optarg); break;
		default:
			if (!progress_option(c, &run_us))
				_exit(CHECK_SETUP);
		}
	if (n_threads < 1 || n_threads > MAX_THREADS || n_children < 0 || n_children > MAX_CHILDREN)
		_exit(CHECK_SETUP);
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	for (int i = 0; i < KINDS; i++)
		object_make(&s->o[i], i);
	watch = progress_begin(run_us);
	orderly = start_child(900, 0);
	start_workers(n_threads, 1, 0);
	if (n_children)
		killed = kill_and_replace();
	else
		sleep_us((unsigned)run_us);
	STORE(s->stop, 1);
	for (int i = 0; i < n_threads; i++)
		UNTIL(LOAD(workers[i].done));
	check_child(orderly);
	progress_end(watch);
	for (int i = 0; i < KINDS; i++) {
		verify(i);
		changes += s->o[i].a;
		deaths += s->o[i].deaths;
	}
	check_say("passed: %ld changes, %ld processes killed, %ld owners died", changes, killed,
		  deaths);
	return 0;
}
