/* SPDX-License-Identifier: MIT */
/*
 * A preloaded clock_gettime() that takes a mutex itself (faked_clock.c): locks that called
 * it would recurse until the stack ends.  Contended objects of all kinds, timed waits
 * among them, by more threads than CPUs; the program asks for the time as well.
 */
#include "../tools/check.h"

#include <semaphore.h>

#define THREADS 8
#define ROUNDS	400

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, shared_mutex, recursive;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
static long sum, spun;

static void work(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static void *worker(void *arg)
{
	uint64_t seed = rnd_seed((uintptr_t)arg);

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec soon = in_us(CLOCK_REALTIME, rnd_below(&seed, 300));

		lock(&mutex);
		work(100);
		sum++;
		if (i % 4 == 0)
			pthread_cond_timedwait(&cond, &mutex, &soon);
		else
			pthread_cond_signal(&cond);
		unlock(&mutex);
		pthread_spin_lock(&spin);
		spun++;
		pthread_spin_unlock(&spin);
		lock(&recursive);
		lock(&shared_mutex);
		work(100);
		unlock(&shared_mutex);
		unlock(&recursive);
		if (!pthread_mutex_timedlock(&mutex, &soon))
			unlock(&mutex);
		if (!pthread_rwlock_timedrdlock(&rwlock, &soon))
			pthread_rwlock_unlock(&rwlock);
		if (i % 8 == 0) {
			pthread_rwlock_wrlock(&rwlock);
			work(100);
			pthread_rwlock_unlock(&rwlock);
		}
		if (i % 16 == 0)
			pthread_barrier_wait(&barrier);
		if (i % 2)
			sem_post(&sem);
		else
			sem_timedwait(&sem, &soon);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long (*calls)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "faked_clock_calls");
	pthread_t t[THREADS];

	(void)argc;
	check_begin(argv[0], 60);
	CHECK(calls);
	mutex_of_type(&recursive, PTHREAD_MUTEX_RECURSIVE);
	mutex_pshared(&shared_mutex);
	pthread_spin_init(&spin, 0);
	pthread_barrier_init(&barrier, NULL, THREADS);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		t[i] = start(worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(sum, THREADS * ROUNDS);
	CHECK_EQ(spun, THREADS * ROUNDS);
	CHECK(calls() >= THREADS * ROUNDS);
	return 0;
}
