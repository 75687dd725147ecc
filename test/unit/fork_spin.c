/* SPDX-License-Identifier: MIT */
/*
 * The child of a fork does not inherit those that wait for spinlocks: it releases
 * them without a system call, those too that its parent's threads wait for, and
 * threads of its own wait as ever.
 */
#include "../tools/no_call.h"

enum { WAITERS = 2, FORKS = 6, WORKERS = 2, ROUNDS = 300 };

static pthread_spinlock_t lock_;
static volatile long sum;

static void *wait_for_it(void *arg)
{
	CHECK_EQ(pthread_spin_lock(&lock_), 0);
	CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	return arg;
}

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_spin_lock(&lock_), 0);
		sum++;
		if (i % 16 == 0)
			sched_yield();
		CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	}
	return arg;
}

static void child(void)
{
	pthread_t t[WORKERS];

	CHECK_EQ(pthread_spin_trylock(&lock_), EBUSY);
	CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	for (int i = 0; i < WORKERS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < WORKERS; i++)
		join(t[i]);
	CHECK_EQ(sum, (long)WORKERS * ROUNDS);
}

static void child_alone(void)
{
	no_futex();
	CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(pthread_spin_lock(&lock_), 0);
		CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	}
}

int main(int argc, char **argv)
{
	pthread_t t[WAITERS];

	(void)argc;
	check_begin(argv[0], 60);
	CHECK_EQ(pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(pthread_spin_lock(&lock_), 0);
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(wait_for_it, NULL);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid;

		sleep_us(3000); /* they wait; where they may sleep, they do */
		pid = check_fork();
		if (!pid) {
			if (i % 2)
				child();
			else
				child_alone();
			_exit(0);
		}
		check_child(pid);
	}
	CHECK_EQ(pthread_spin_unlock(&lock_), 0);
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	return 0;
}
