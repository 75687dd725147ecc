/* SPDX-License-Identifier: MIT */
/*
 * Spinlocks, semaphores and barriers under load, each with what it promises.
 *
 *   -m M  spin:    sections that must not meet
 *         sem:     a semaphore of 2 as a room for two, left and entered, with timeouts and
 *                  cancellation
 *         barrier: rounds that nobody may leave early, on barriers that are destroyed and unmapped
 *   -t N  threads (6)   -d S  seconds (2)   -s N  seed   -w S  hang limit
 *   -S    signals, whose handler takes a spinlock of its own and posts
 */
#include "../tools/progress.h"

#include <getopt.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#define MAX_THREADS 64
#define PER_BARRIER 200 /* rounds, then a new one */

static enum { SPIN, SEM, BARRIER } mode;
static int n_threads = 6, signals;
static long run_us = 2000000;
static int stop;

static pthread_spinlock_t spins[2], handlers_spin;
static volatile uint64_t cell[2][2]; /* guarded by spins; each pair is equal outside of sections */
static sem_t room, posted;
static int in_room, handled;
static pthread_barrier_t *barrier;
static pthread_barrier_t swap_begins, swap_ends;
static int last_time;
static uint64_t round_of[MAX_THREADS];

static void *work_spin(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed((uint64_t)id);

	for (progress_at(id, "spins"); !LOAD(stop); progress_made(id)) {
		int k = (int)rnd_below(&rng, 2);

		if (rnd_below(&rng, 8) || pthread_spin_trylock(&spins[k]))
			CHECK_EQ(pthread_spin_lock(&spins[k]), 0);
		CHECK_EQ(cell[k][0], cell[k][1]);
		cell[k][0]++;
		if (!rnd_below(&rng, 256))
			sched_yield();
		cell[k][1]++;
		CHECK_EQ(pthread_spin_unlock(&spins[k]), 0);
	}
	progress_at(id, NULL);
	return NULL;
}

static void enter(uint64_t *rng)
{
	struct timespec at = in_us(CLOCK_REALTIME, (long)rnd_below(rng, 300));

	if (!rnd_below(rng, 3) && !sem_timedwait(&room, &at))
		return;
	while (sem_wait(&room))
		CHECK_EQ(errno, EINTR);
}

static void *work_sem(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t rng = rnd_seed((uint64_t)id);

	for (progress_at(id, "enters the room"); !LOAD(stop); progress_made(id)) {
		enter(&rng);
		CHECK(__atomic_add_fetch(&in_room, 1, __ATOMIC_SEQ_CST) <= 2);
		if (!rnd_below(&rng, 32))
			sched_yield();
		__atomic_sub_fetch(&in_room, 1, __ATOMIC_SEQ_CST);
		CHECK_EQ(sem_post(&room), 0);
	}
	progress_at(id, NULL);
	return NULL;
}

/* Waits for room for ever and is cancelled: takes nothing, or gives it back. */
static void *to_be_cancelled(void *arg)
{
	(void)arg;
	for (;;) {
		if (sem_wait(&room))
			continue;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		CHECK(__atomic_add_fetch(&in_room, 1, __ATOMIC_SEQ_CST) <= 2);
		__atomic_sub_fetch(&in_room, 1, __ATOMIC_SEQ_CST);
		CHECK_EQ(sem_post(&room), 0);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	return NULL;
}

static void *work_barrier(void *arg)
{
	int id = (int)(intptr_t)arg, over = 0;

	for (progress_at(id, "is at a barrier"); !over; progress_made(id)) {
		pthread_barrier_t *b;
		int serial = 0;

		/* One asks for all: between two that did, `stop` may change. */
		if (pthread_barrier_wait(&swap_begins) == PTHREAD_BARRIER_SERIAL_THREAD)
			STORE(last_time, LOAD(stop));
		b = LOAD(barrier);
		pthread_barrier_wait(&swap_ends);
		over = LOAD(last_time);
		for (int i = 0; i < PER_BARRIER; i++) {
			STORE(round_of[id], round_of[id] + 1);
			serial = pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD;
			for (int k = 0; k < n_threads; k++)
				CHECK(LOAD(round_of[k]) - round_of[id] <= 1);
			progress_made(id);
		}
		if (!serial)
			continue;
		CHECK_EQ(pthread_barrier_destroy(b), 0);
		CHECK_EQ(munmap(b, 4096), 0);
		b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(b != MAP_FAILED);
		CHECK_EQ(pthread_barrier_init(b, NULL, (unsigned)n_threads), 0);
		STORE(barrier, b);
	}
	progress_at(id, NULL);
	return NULL;
}

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	CHECK_EQ(pthread_spin_lock(&handlers_spin), 0);
	handled++;
	CHECK_EQ(pthread_spin_unlock(&handlers_spin), 0);
	CHECK_EQ(sem_post(&posted), 0);
	errno = saved;
}

static int parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "m:t:d:s:w:S")) != -1) {
		switch (opt) {
		case 'm':
			mode = !strcmp(optarg, "spin") ? SPIN :
			       !strcmp(optarg, "sem")  ? SEM :
							 BARRIER;
			break;
		case 't': n_threads = atoi(optarg); break;
		case 'S': signals = 1; break;
		default:
			if (!progress_option(opt, &run_us))
				return CHECK_SETUP;
		}
	}
	return n_threads < 1 || n_threads > MAX_THREADS ? CHECK_SETUP : 0;
}

static void make_objects(void)
{
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_spin_init(&spins[i], PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(pthread_spin_init(&handlers_spin, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(sem_init(&room, 0, 2), 0);
	CHECK_EQ(sem_init(&posted, 0, 0), 0);
	CHECK_EQ(pthread_barrier_init(&swap_begins, NULL, (unsigned)n_threads), 0);
	CHECK_EQ(pthread_barrier_init(&swap_ends, NULL, (unsigned)n_threads), 0);
	barrier = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(barrier != MAP_FAILED);
	CHECK_EQ(pthread_barrier_init(barrier, NULL, (unsigned)n_threads), 0);
}

int main(int argc, char **argv)
{
	static void *(*const work[])(void *) = {work_spin, work_sem, work_barrier};
	pthread_t t[MAX_THREADS], dog, victim;
	struct timespec end;
	uint64_t rng;
	int sent = 0;

	check_begin(argv[0], 0);
	if (parse(argc, argv))
		return CHECK_SETUP;
	rng = rnd_seed(1000);
	make_objects();
	signal(SIGUSR1, on_signal);
	dog = progress_begin(run_us);
	start_numbered(t, n_threads, 0, work[mode]);
	end = in_us(CLOCK_MONOTONIC, run_us);
	while (!is_past(CLOCK_MONOTONIC, end)) {
		if (mode == SEM) {
			victim = start(to_be_cancelled, NULL);
			sleep_us(rnd_below(&rng, 500));
			CHECK_EQ(pthread_cancel(victim), 0);
			CHECK(join(victim) == PTHREAD_CANCELED);
		}
		if (signals && !pthread_kill(t[rnd_below(&rng, (unsigned)n_threads)], SIGUSR1))
			sent++;
		sleep_us(signals ? 200 : 1000);
	}
	/* Each signal that was not merged with another has posted once. */
	STORE(stop, 1);
	join_all(t, n_threads);
	progress_end(dog);
	CHECK(handled <= sent);
	for (int i = 0; i < handled; i++)
		CHECK_EQ(sem_trywait(&posted), 0);
	CHECK_EQ(sem_trywait(&posted), -1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sem_trywait(&room), 0);
	CHECK_EQ(sem_trywait(&room), -1);
	return 0;
}
