/* SPDX-License-Identifier: MIT */
/* Spinlocks exclude, with more threads than CPUs too; trylock says EBUSY. */
#include "api.h"

enum { THREADS = 8, ROUNDS = 20000 };
static fg_spin_t spin = FG_SPIN_INIT;
static volatile long count;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (i & 1)
			CHECK_EQ(fg_spin_lock(&spin), 0);
		else
			while (fg_spin_trylock(&spin))
				sched_yield();
		count = count + 1;
		CHECK_EQ(fg_spin_unlock(&spin), 0);
	}
	return NULL;
}

static void *try(void *arg)
{
	return (void *)(long)fg_spin_trylock(&spin);
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	api_begin(argv[0], 120);
	CHECK_EQ(fg_spin_lock(&spin), 0);
	CHECK_EQ(fg_spin_trylock(&spin), EBUSY);
	CHECK_EQ(in_thread(try, NULL), EBUSY);
	CHECK_EQ(fg_spin_unlock(&spin), 0);
	CHECK_EQ(fg_spin_trylock(&spin), 0);
	CHECK_EQ(fg_spin_unlock(&spin), 0);
	CHECK_EQ(fg_spin_destroy(&spin), 0);
	CHECK_EQ(fg_spin_init(&spin), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(work, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(count, THREADS * ROUNDS);
	return 0;
}
