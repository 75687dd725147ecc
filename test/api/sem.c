/* SPDX-License-Identifier: MIT */
/*
 * Semaphores: values, limits, time, posts from a signal handler; none is lost, however waits end.
 */
#include "api.h"

enum { THREADS = 8, ROUNDS = 3000, PLACES = 3 };
static fg_sem_t sem = FG_SEM_INIT(2), posted;
static int inside, most;

static void limits(void)
{
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	struct timespec bad = {0, 1000000000};

	CHECK_EQ(fg_sem_trywait(&sem), 0);
	CHECK_EQ(fg_sem_wait(&sem), 0);
	CHECK_EQ(fg_sem_trywait(&sem), EAGAIN);
	for (int i = 0; i < 2; i++)
		for (long us = -1000; us <= 3000; us += 2000) {
			struct timespec at = in_us(clocks[i], us);

			CHECK_EQ(fg_sem_timedwait(&sem, clocks[i], &at), ETIMEDOUT);
			CHECK(is_past(clocks[i], at));
			CHECK_EQ(fg_sem_post(&sem), 0);
			CHECK_EQ(fg_sem_timedwait(&sem, clocks[i], &at), 0);
		}
	CHECK_EQ(fg_sem_timedwait(&sem, CLOCK_MONOTONIC, &bad), EINVAL);
	bad.tv_nsec = 0;
	CHECK_EQ(fg_sem_timedwait(&sem, -1, &bad), EINVAL);
	CHECK_EQ(fg_sem_destroy(&sem), 0);
	CHECK_EQ(fg_sem_init(&sem, 0x80000000u), EINVAL);
	CHECK_EQ(fg_sem_init(&sem, 0x7fffffffu), 0);
	CHECK_EQ(fg_sem_post(&sem), EOVERFLOW);
	CHECK_EQ(fg_sem_wait(&sem), 0);
	CHECK_EQ(fg_sem_post(&sem), 0);
}

/* No more than PLACES at a time, whatever way they come in. */
static void *places(void *arg)
{
	uint64_t s = rnd_seed((uintptr_t)arg);

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec at = in_us(CLOCK_MONOTONIC, rnd_below(&s, 100));
		int now;

		switch (rnd_below(&s, 3)) {
		case 0: CHECK_EQ(fg_sem_wait(&sem), 0); break;
		case 1:
			while (fg_sem_timedwait(&sem, CLOCK_MONOTONIC, &at))
				at = in_us(CLOCK_MONOTONIC, rnd_below(&s, 100));
			break;
		default:
			while (fg_sem_trywait(&sem))
				sched_yield();
		}
		now = ADD(inside, 1);
		CHECK(now <= PLACES);
		if (now > LOAD(most))
			STORE(most, now);
		ADD(inside, -1);
		CHECK_EQ(fg_sem_post(&sem), 0);
	}
	return NULL;
}

static void *consume(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(fg_sem_wait(&posted), 0);
	return NULL;
}

static void handler(int sig)
{
	fg_sem_post(&posted);
}

int main(int argc, char **argv)
{
	struct sigaction sa;
	pthread_t t[THREADS];

	api_begin(argv[0], 120);
	limits();

	CHECK_EQ(fg_sem_init(&sem, PLACES), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(places, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	for (int i = 0; i < PLACES; i++)
		CHECK_EQ(fg_sem_trywait(&sem), 0);
	CHECK_EQ(fg_sem_trywait(&sem), EAGAIN);

	/* Exactly as many posts as waits, some of them by a handler. */
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handler;
	sigaction(SIGUSR1, &sa, NULL);
	for (int i = 0; i < 2; i++)
		t[i] = start(consume, NULL);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		if (i % 3)
			CHECK_EQ(fg_sem_post(&posted), 0);
		else
			raise(SIGUSR1);
		if (i % 64 == 0)
			sleep_us(50);
	}
	for (int i = 0; i < 2; i++)
		join(t[i]);
	CHECK_EQ(fg_sem_trywait(&posted), EAGAIN);
	return 0;
}
