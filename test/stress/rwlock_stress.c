/* SPDX-License-Identifier: MIT */
/*
 * Readers and writers of a few locks.  A writer leaves the guarded cells
 * unequal while it is inside; a reader that sees them so has met a writer.
 *
 *   -t N  threads (default 8)  -l N  locks (2)  -d S  seconds (2)  -s N  seed
 *   -w N  writes in 1000 operations (200)  -k N  kind: 0, 1, 2 of glibc, or 3: any
 *   -r    read locks are taken again inside (not with kind 2)
 *   -T    timed and try operations too, many of them to time out at once
 *   -S    signals whose handler takes a read lock or a write lock of its own
 *   -Y    yield the CPU inside, to be met there
 *   -U    each round on a fresh lock, which its last user unmaps
 */
#include "../tools/progress.h"

#include <getopt.h>
#include <sched.h>
#include <sys/mman.h>

#define MAX_THREADS PROGRESS_MAX
#define CELLS	    4

struct object {
	pthread_rwlock_t lock;
	volatile uint64_t cell[CELLS]; /* guarded by lock; equal while nobody writes */
	volatile uint64_t written;     /* guarded by lock */
	int readers, writers;	       /* inside now; atomic, apart from the lock's own count */
	int refs;		       /* -U: guarded by lock, as written by writers only */
} __attribute__((aligned(64)));

static int n_threads = 8, n_locks = 2, writes = 200, kind, recursive, timed, signals, unmap, yields;
static long run_us = 2000000;
static struct object *objects;
static pthread_rwlock_t handlers_lock = PTHREAD_RWLOCK_INITIALIZER;
static int stop;
static uint64_t writes_of[MAX_THREADS];

static void rwlock_new(pthread_rwlock_t *l, int k)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	CHECK_EQ(pthread_rwlockattr_setkind_np(&attr, k), 0);
	CHECK_EQ(pthread_rwlock_init(l, &attr), 0);
	pthread_rwlockattr_destroy(&attr);
}

static void look(struct object *o, uint64_t *rng)
{
	uint64_t first = o->cell[0];

	for (volatile unsigned n = rnd_below(rng, 200); n; n--)
		;
	if (yields || !rnd_below(rng, 64))
		sched_yield();
	for (int i = 1; i < CELLS; i++)
		CHECK_EQ(o->cell[i], first);
}

static void read_inside(struct object *o, uint64_t *rng, int depth)
{
	__atomic_fetch_add(&o->readers, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(LOAD(o->writers), 0);
	look(o, rng);
	if (recursive && depth < 3 && !rnd_below(rng, 4)) {
		CHECK_EQ(pthread_rwlock_rdlock(&o->lock), 0);
		read_inside(o, rng, depth + 1);
		CHECK_EQ(pthread_rwlock_unlock(&o->lock), 0);
	}
	CHECK_EQ(LOAD(o->writers), 0);
	__atomic_fetch_sub(&o->readers, 1, __ATOMIC_SEQ_CST);
}

static void write_inside(struct object *o, uint64_t *rng)
{
	CHECK_EQ(__atomic_fetch_add(&o->writers, 1, __ATOMIC_SEQ_CST), 0);
	CHECK_EQ(LOAD(o->readers), 0);
	for (int i = 0; i < CELLS; i++) {
		o->cell[i]++;
		if (!rnd_below(rng, 256))
			sched_yield();
	}
	o->written++;
	look(o, rng);
	CHECK_EQ(LOAD(o->readers), 0);
	__atomic_fetch_sub(&o->writers, 1, __ATOMIC_SEQ_CST);
}

/* How often it got the lock: 0 or 1. */
static int take(struct object *o, int write, uint64_t *rng)
{
	int r, how = timed ? (int)rnd_below(rng, 4) : 0;
	struct timespec at = in_us(how == 3 ? CLOCK_MONOTONIC : CLOCK_REALTIME,
				   (long)rnd_below(rng, 200));

	switch (how) {
	case 0:
		r = write ? pthread_rwlock_wrlock(&o->lock) : pthread_rwlock_rdlock(&o->lock);
		CHECK_EQ(r, 0);
		return 1;
	case 1:
		r = write ? pthread_rwlock_trywrlock(&o->lock) : pthread_rwlock_tryrdlock(&o->lock);
		CHECK(r == 0 || r == EBUSY);
		return r == 0;
	case 2:
		r = write ? pthread_rwlock_timedwrlock(&o->lock, &at) :
			    pthread_rwlock_timedrdlock(&o->lock, &at);
		break;
	default:
		r = write ? pthread_rwlock_clockwrlock(&o->lock, CLOCK_MONOTONIC, &at) :
			    pthread_rwlock_clockrdlock(&o->lock, CLOCK_MONOTONIC, &at);
	}
	CHECK(r == 0 || r == ETIMEDOUT);
	return r == 0;
}

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed(id);

	while (!LOAD(stop)) {
		struct object *o = &objects[rnd_below(&rng, (unsigned)n_locks)];
		int write = (int)rnd_below(&rng, 1000) < writes;

		progress_at(id, write ? "writes" : "reads");
		if (take(o, write, &rng)) {
			if (write) {
				write_inside(o, &rng);
				writes_of[id]++;
			} else {
				read_inside(o, &rng, 0);
			}
			CHECK_EQ(pthread_rwlock_unlock(&o->lock), 0);
		}
		progress_made(id);
	}
	progress_at(id, NULL);
	return NULL;
}

/* -U: whoever is the last one to write destroys and unmaps. */
static struct object *shared_object;
static pthread_barrier_t round_begins, round_ends;

static void *work_unmap(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed(id);

	for (;;) {
		struct object *o;
		int last;

		progress_at(id, NULL);
		pthread_barrier_wait(&round_begins);
		o = shared_object;
		if (!o)
			return NULL;
		progress_at(id, "uses an object");
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(pthread_rwlock_rdlock(&o->lock), 0);
			read_inside(o, &rng, 0);
			CHECK_EQ(pthread_rwlock_unlock(&o->lock), 0);
		}
		CHECK_EQ(pthread_rwlock_wrlock(&o->lock), 0);
		write_inside(o, &rng);
		last = --o->refs == 0;
		CHECK_EQ(pthread_rwlock_unlock(&o->lock), 0);
		if (last) {
			CHECK_EQ(pthread_rwlock_destroy(&o->lock), 0);
			CHECK_EQ(munmap(o, 4096), 0);
		}
		progress_made(id);
		pthread_barrier_wait(&round_ends);
	}
}

static void on_signal(int sig)
{
	static volatile unsigned n;
	int saved = errno;

	(void)sig;
	if (n++ % 4)
		CHECK_EQ(pthread_rwlock_rdlock(&handlers_lock), 0);
	else if (pthread_rwlock_trywrlock(&handlers_lock))
		return;
	CHECK_EQ(pthread_rwlock_unlock(&handlers_lock), 0);
	errno = saved;
}

static int parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "t:l:d:s:w:k:rTSUY")) != -1) {
		switch (opt) {
		case 't': n_threads = atoi(optarg); break;
		case 'l': n_locks = atoi(optarg); break;
		case 'w': writes = atoi(optarg); break;
		case 'k': kind = atoi(optarg); break;
		case 'r': recursive = 1; break;
		case 'T': timed = 1; break;
		case 'S': signals = 1; break;
		case 'U': unmap = 1; break;
		case 'Y': yields = 1; break;
		default:
			if (!progress_option(opt, &run_us))
				return CHECK_SETUP;
		}
	}
	if (n_threads < 1 || n_threads > MAX_THREADS || n_locks < 1 || (recursive && kind > 1))
		return CHECK_SETUP;
	return 0;
}

/* An object that its last user destroys. */
static void one_round(uint64_t *rng)
{
	struct object *o = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);

	CHECK(o != MAP_FAILED);
	rwlock_new(&o->lock, kind == 3 ? (int)rnd_below(rng, 3) : kind);
	o->refs = n_threads;
	shared_object = o;
	pthread_barrier_wait(&round_begins);
	pthread_barrier_wait(&round_ends);
}

int main(int argc, char **argv)
{
	struct timespec end;
	pthread_t t[MAX_THREADS], dog;
	uint64_t sum = 0, want = 0, rng;

	check_begin(argv[0], 0);
	if (parse(argc, argv))
		return CHECK_SETUP;
	rng = rnd_seed(1000);
	objects = aligned_alloc(64, sizeof(*objects) * (size_t)n_locks);
	memset(objects, 0, sizeof(*objects) * (size_t)n_locks);
	for (int i = 0; i < n_locks; i++)
		rwlock_new(&objects[i].lock, kind == 3 ? i % 3 : kind);
	signal(SIGUSR1, on_signal);
	pthread_barrier_init(&round_begins, NULL, (unsigned)n_threads + 1);
	pthread_barrier_init(&round_ends, NULL, (unsigned)n_threads + 1);
	dog = progress_begin(run_us);
	start_numbered(t, n_threads, 0, unmap ? work_unmap : work);
	end = in_us(CLOCK_MONOTONIC, run_us);
	while (!is_past(CLOCK_MONOTONIC, end)) {
		if (unmap) {
			one_round(&rng);
		} else {
			sleep_us(signals ? 100 : 10000);
			if (signals)
				pthread_kill(t[rnd_below(&rng, (unsigned)n_threads)], SIGUSR1);
		}
	}
	STORE(stop, 1);
	shared_object = NULL;
	if (unmap)
		pthread_barrier_wait(&round_begins);
	join_all(t, n_threads);
	for (int i = 0; i < n_threads; i++)
		want += writes_of[i];
	progress_end(dog);
	for (int i = 0; i < n_locks; i++) {
		sum += objects[i].written;
		CHECK_EQ(pthread_rwlock_trywrlock(&objects[i].lock), 0);
		CHECK_EQ(pthread_rwlock_unlock(&objects[i].lock), 0);
		CHECK_EQ(pthread_rwlock_destroy(&objects[i].lock), 0);
	}
	CHECK_EQ(sum, want);
	return 0;
}
