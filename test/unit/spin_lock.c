/* SPDX-License-Identifier: MIT */
/*
 * Spinlocks exclude, with more threads than CPUs too; what the operations answer; memory of zeroes
 * is a held one.
 */
#include "../tools/check.h"

enum { THREADS = 6, LOCKS = 3, ROUNDS = 5000 };

static struct {
	pthread_spinlock_t lock;
	volatile long sum;
} o[LOCKS];

static void *add(void *arg)
{
	uint64_t rng = rnd_seed((uint64_t)(uintptr_t)arg);

	for (int i = 0; i < ROUNDS; i++) {
		int k = (int)rnd_below(&rng, LOCKS);

		if (i % 4 || pthread_spin_trylock(&o[k].lock))
			CHECK_EQ(pthread_spin_lock(&o[k].lock), 0);
		o[k].sum++;
		if (!rnd_below(&rng, 512))
			sched_yield();
		CHECK_EQ(pthread_spin_unlock(&o[k].lock), 0);
	}
	return NULL;
}

static void *unlock_it(void *arg)
{
	CHECK_EQ(pthread_spin_trylock(arg), EBUSY);
	CHECK_EQ(pthread_spin_unlock(arg), 0);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_spinlock_t zero;
	pthread_t t[THREADS];
	long sum = 0;

	(void)argc;
	check_begin(argv[0], 60);
	/* As with glibc's, of which each CPU has its own. */
#if defined(__x86_64__) || defined(__i386__)
	CHECK_EQ(pthread_spin_trylock(&zero), EBUSY);
#else
	CHECK_EQ(pthread_spin_trylock(&zero), 0);
	CHECK_EQ(pthread_spin_trylock(&zero), EBUSY);
	CHECK_EQ(pthread_spin_unlock(&zero), 0);
#endif
	for (int i = 0; i < LOCKS; i++)
		CHECK_EQ(pthread_spin_init(&o[i].lock, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(pthread_spin_lock(&o[0].lock), 0);
	CHECK_EQ(pthread_spin_trylock(&o[0].lock), EBUSY);
	join(start(unlock_it, (void *)&o[0].lock));
	for (long i = 0; i < THREADS; i++)
		t[i] = start(add, (void *)i);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	for (int i = 0; i < LOCKS; i++) {
		sum += o[i].sum;
		CHECK_EQ(pthread_spin_trylock(&o[i].lock), 0);
		CHECK_EQ(pthread_spin_unlock(&o[i].lock), 0);
		CHECK_EQ(pthread_spin_destroy(&o[i].lock), 0);
	}
	CHECK_EQ(sum, (long)THREADS * ROUNDS);
	return 0;
}
