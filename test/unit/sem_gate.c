/* SPDX-License-Identifier: MIT */
/*
 * Two threads wait for a semaphore, of which one value is posted.  The one that came first does not
 * take it, since it is in a signal handler, and does not come back before the other one has had it.
 * Also where the handler waits for that semaphore itself.  The first is at the gate only with the
 * policy "spin"; with others it sleeps by then.
 */
#include "../tools/check.h"

#include <semaphore.h>
#include <signal.h>

static sem_t sem;
static int in_handler, second_waits, second_had_it, again;

static void handler(int sig)
{
	(void)sig;
	STORE(in_handler, 1);
	if (again)
		CHECK_EQ(sem_wait(&sem), 0);
	UNTIL(LOAD(second_had_it));
}

static void *first(void *arg)
{
	CHECK_EQ(sem_wait(&sem), 0);
	return arg;
}

static void *second(void *arg)
{
	STORE(second_waits, 1);
	CHECK_EQ(sem_wait(&sem), 0);
	STORE(second_had_it, 1);
	return arg;
}

static void round_of_two(void)
{
	pthread_t t[2];
	int value;

	in_handler = second_waits = second_had_it = 0;
	t[0] = start(first, NULL);
	sleep_us(1000); /* it waits */
	CHECK_EQ(pthread_kill(t[0], SIGUSR1), 0);
	UNTIL(LOAD(in_handler));
	t[1] = start(second, NULL);
	UNTIL(LOAD(second_waits));
	sleep_us(500);
	for (int i = 0; i <= again; i++)
		CHECK_EQ(sem_post(&sem), 0);
	UNTIL(LOAD(second_had_it));
	CHECK_EQ(sem_post(&sem), 0);
	join(t[0]);
	join(t[1]);
	CHECK_EQ(sem_getvalue(&sem, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(sem_trywait(&sem), -1);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};

	(void)argc;
	check_begin(argv[0], 20);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	for (int i = 0; i < 20; i++) {
		again = i % 2;
		round_of_two();
	}
	CHECK_EQ(sem_destroy(&sem), 0);
	return 0;
}
