/* SPDX-License-Identifier: MIT */
/*
 * A process-shared condition variable with waiters in several processes: each broadcast reaches all
 * that wait, however little time has passed since they released the mutex, and none is repeated.
 * Signals one at a time reach as many as there are, and a waiter that is cancelled takes none with
 * it.
 */
#include "../tools/check.h"
#include <sys/mman.h>

enum { PROCESSES = 5, ROUNDS = 4000 };

static struct shared {
	pthread_mutex_t m;
	pthread_cond_t turn, all;
	int round, there; /* guarded by m, as the rest */
	int tokens, taken, waiting, cancelled;
} *s;

static void child(void)
{
	lock(&s->m);
	for (int round = 0; round < ROUNDS; round++) {
		if (++s->there == PROCESSES)
			CHECK_EQ(pthread_cond_signal(&s->all), 0);
		while (s->round == round)
			CHECK_EQ(pthread_cond_wait(&s->turn, &s->m), 0);
	}
	/* One token for each. */
	s->waiting++;
	while (!s->tokens)
		CHECK_EQ(pthread_cond_wait(&s->turn, &s->m), 0);
	s->tokens--;
	s->taken++;
	unlock(&s->m);
	_exit(0);
}

static void has_mutex(void *arg)
{
	(void)arg;
	s->cancelled++;
	unlock(&s->m);
}

static void *victim(void *arg)
{
	(void)arg;
	lock(&s->m);
	s->waiting++;
	pthread_cleanup_push(has_mutex, NULL);
	/*
	 * It may be woken before it acts upon the cancellation, which stays pending then (POSIX,
	 * 2.9.5; glibc from 2.41 on): the signal is for somebody else.
	 */
	for (;;) {
		pthread_cond_wait(&s->turn, &s->m);
		if (s->tokens)
			pthread_cond_signal(&s->turn);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void wait_until(int *what, int value)
{
	for (int have = !value; have != value; sleep_us(100)) {
		lock(&s->m);
		have = *what;
		unlock(&s->m);
	}
}

int main(int argc, char **argv)
{
	pid_t pid[PROCESSES];
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 20);
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	mutex_pshared(&s->m);
	cond_pshared(&s->turn);
	cond_pshared(&s->all);
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = check_fork();
		if (!pid[i])
			child();
	}
	lock(&s->m);
	for (int round = 0; round < ROUNDS; round++) {
		while (s->there < PROCESSES)
			CHECK_EQ(pthread_cond_wait(&s->all, &s->m), 0);
		s->there = 0;
		s->round++;
		/* With the mutex and without it. */
		if (round & 1)
			unlock(&s->m);
		CHECK_EQ(pthread_cond_broadcast(&s->turn), 0);
		if (round & 1)
			lock(&s->m);
	}
	unlock(&s->m);

	t = start(victim, NULL);
	wait_until(&s->waiting, PROCESSES + 1);
	CHECK_EQ(pthread_cancel(t), 0);
	for (int i = 0; i < PROCESSES; i++) {
		lock(&s->m);
		s->tokens++;
		unlock(&s->m);
		CHECK_EQ(pthread_cond_signal(&s->turn), 0);
		if (i == 0)
			CHECK(join(t) == PTHREAD_CANCELED);
	}
	for (int i = 0; i < PROCESSES; i++)
		check_child(pid[i]);
	CHECK_EQ(s->taken, PROCESSES);
	CHECK_EQ(s->cancelled, 1);
	CHECK_EQ(pthread_cond_destroy(&s->turn), 0);
	CHECK_EQ(pthread_cond_destroy(&s->all), 0);
	CHECK_EQ(pthread_mutex_destroy(&s->m), 0);
	return 0;
}
