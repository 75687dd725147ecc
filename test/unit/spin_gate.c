/* SPDX-License-Identifier: MIT */
/*
 * Two threads wait for a spinlock.  The one that came first does not take it when it is released,
 * since it is in a signal handler, and does not come back before the other one has had the lock;
 * nor is the lock ever released again.  Also where the handler waits for that spinlock itself.
 */
#include "../tools/check.h"

#include <signal.h>

static pthread_spinlock_t spin;
static int in_handler, second_waits, second_had_it, again;

static void handler(int sig)
{
	(void)sig;
	STORE(in_handler, 1);
	UNTIL(LOAD(second_had_it));
	if (again) {
		CHECK_EQ(pthread_spin_lock(&spin), 0);
		CHECK_EQ(pthread_spin_unlock(&spin), 0);
	}
}

static void *first(void *arg)
{
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	return arg;
}

static void *second(void *arg)
{
	STORE(second_waits, 1);
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	STORE(second_had_it, 1);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	return arg;
}

static void round_of_two(void)
{
	pthread_t t[2];

	in_handler = second_waits = second_had_it = 0;
	CHECK_EQ(pthread_spin_lock(&spin), 0);
	t[0] = start(first, NULL);
	sleep_us(2000); /* it waits */
	CHECK_EQ(pthread_kill(t[0], SIGUSR1), 0);
	UNTIL(LOAD(in_handler));
	t[1] = start(second, NULL);
	UNTIL(LOAD(second_waits));
	sleep_us(2000);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	join(t[0]);
	join(t[1]);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};

	(void)argc;
	check_begin(argv[0], 20);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
	for (int i = 0; i < 20; i++) {
		again = i % 2;
		round_of_two();
	}
	CHECK_EQ(pthread_spin_destroy(&spin), 0);
	return 0;
}
