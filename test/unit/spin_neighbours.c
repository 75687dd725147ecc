/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a spinlock cost those nothing that use others: no release of these makes a
 * system call.
 */
#include "../tools/no_call.h"

enum { LOCKS = 2000, WAITED_FOR = 2, WAITERS = 4, PASSES = 20 };

static pthread_spinlock_t lock_[LOCKS];

static void *wait_for_one(void *arg)
{
	pthread_spin_lock(arg);
	return NULL; /* never */
}

static void use_others(void)
{
	for (int i = 0; i < WAITERS; i++)
		start(wait_for_one, (void *)&lock_[i % WAITED_FOR]);
	sleep_us(5000);
	no_futex();
	for (int pass = 0; pass < PASSES; pass++) {
		for (int i = WAITED_FOR; i < LOCKS; i++) {
			CHECK_EQ(pthread_spin_lock(&lock_[i]), 0);
			CHECK_EQ(pthread_spin_unlock(&lock_[i]), 0);
		}
		sleep_us(500);
	}
}

int main(int argc, char **argv)
{
	pid_t child;

	(void)argc;
	check_begin(argv[0], 60);
	for (int i = 0; i < LOCKS; i++)
		CHECK_EQ(pthread_spin_init(&lock_[i], PTHREAD_PROCESS_PRIVATE), 0);
	for (int i = 0; i < WAITED_FOR; i++)
		CHECK_EQ(pthread_spin_lock(&lock_[i]), 0);
	child = check_fork();
	if (!child) {
		use_others();
		_exit(0);
	}
	check_child(child);
	return 0;
}
