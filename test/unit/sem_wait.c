/* SPDX-License-Identifier: MIT */
/*
 * Semaphores: no post is lost, whether waiters are awake or asleep, time out or
 * are cancelled, asynchronously too; errors; a signal handler may post; waits end with EINTR.
 */
#include "../tools/check.h"

#include <semaphore.h>

enum { THREADS = 6, POSTS = 30000 };

static sem_t sem;
static int taken, stop, ready, seen;
static const struct timespec invalid = {0, -1}, past = {1, 0};

static void *take(void *arg)
{
	uint64_t rng = rnd_seed((uint64_t)(uintptr_t)arg);

	while (!LOAD(stop)) {
		struct timespec at = in_us(CLOCK_REALTIME, (long)rnd_below(&rng, 300));
		struct timespec soon = in_us(CLOCK_MONOTONIC, (long)rnd_below(&rng, 300));
		int r = rnd_below(&rng, 2) ? sem_timedwait(&sem, &at) :
					     sem_clockwait(&sem, CLOCK_MONOTONIC, &soon);

		if (r == 0)
			ADD(taken, 1);
		else
			CHECK(errno == ETIMEDOUT);
	}
	return NULL;
}

static void no_post_lost(void)
{
	pthread_t t[THREADS];
	uint64_t rng = rnd_seed(99);

	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	for (long i = 0; i < THREADS; i++)
		t[i] = start(take, (void *)i);
	for (int i = 0; i < POSTS; i++) {
		CHECK_EQ(sem_post(&sem), 0);
		if (!rnd_below(&rng, 64))
			sleep_us(rnd_below(&rng, 200));
	}
	while (LOAD(taken) < POSTS)
		sleep_us(1000);
	STORE(stop, 1);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(taken, POSTS);
	CHECK_EQ(sem_trywait(&sem), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void *cancel_me(void *arg)
{
	(void)arg;
	STORE(ready, 1);
	sem_wait(&sem);
	CHECK(!"returned");
	return NULL;
}

static void *cancelled_before(void *arg)
{
	pthread_cancel(pthread_self());
	return cancel_me(arg);
}

static void cancellation(void)
{
	int value;
	pthread_t t;

	t = start(cancel_me, NULL);
	while (!LOAD(ready))
		sleep_us(100);
	sleep_us(1000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK(join(t) == PTHREAD_CANCELED);
	CHECK_EQ(sem_post(&sem), 0);
	CHECK(join(start(cancelled_before, NULL)) == PTHREAD_CANCELED);
	CHECK_EQ(sem_getvalue(&sem, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(sem_wait(&sem), 0);
}

static void *cancel_me_anywhere(void *arg)
{
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	STORE(ready, 1);
	sem_wait(arg);
	CHECK(!"returned");
	return NULL;
}

/* Nobody is left counted as one that sleeps, and a value that comes meanwhile is left there. */
static void cancellation_anywhere(void)
{
	static sem_t of[20];

	for (int i = 0; i < 20; i++) {
		pthread_t t;
		uint64_t all;

		CHECK_EQ(sem_init(&of[i], 0, 0), 0);
		STORE(ready, 0);
		t = start(cancel_me_anywhere, &of[i]);
		UNTIL(LOAD(ready));
		sleep_us(1000); /* it waits */
		CHECK_EQ(pthread_cancel(t), 0);
		if (i % 2)
			CHECK_EQ(sem_post(&of[i]), 0);
		CHECK(join(t) == PTHREAD_CANCELED);
		memcpy(&all, &of[i], sizeof all);
		CHECK_EQ(all, i % 2);
	}
}

static void handler(int sig)
{
	(void)sig;
	if (LOAD(ready) == 2)
		sem_post(&sem);
}

static void *signals(void *arg)
{
	/* The first may come before it waits. */
	for (STORE(ready, 1); !LOAD(seen); sleep_us(20000))
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	STORE(ready, 2);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void interrupted(void)
{
	struct sigaction sa = {.sa_handler = handler};
	pthread_t me = pthread_self(), t;

	sigaction(SIGUSR1, &sa, NULL);
	STORE(ready, 0);
	t = start(signals, &me);
	CHECK_EQ(sem_wait(&sem), -1);
	CHECK_EQ(errno, EINTR);
	STORE(seen, 1);
	while (sem_wait(&sem))
		CHECK_EQ(errno, EINTR);
	join(t);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	CHECK_EQ(sem_init(&sem, 0, 1), 0);
	CHECK_EQ(sem_timedwait(&sem, &invalid), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &past), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sem_timedwait(&sem, &past), 0);
	CHECK_EQ(sem_timedwait(&sem, &past), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	no_post_lost();
	cancellation();
	cancellation_anywhere();
	interrupted();
	CHECK_EQ(sem_destroy(&sem), 0);
	return 0;
}
