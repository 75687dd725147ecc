/* SPDX-License-Identifier: MIT */
/*
 * An unlock touches nothing of the mutex after it has released it: after every
 * instruction of it another thread tries to take the lock, and as soon as it can,
 * destroys the mutex and takes its memory away.
 */
#include "../tools/step.h"

#include <sched.h>
#include <sys/mman.h>

#ifdef STEP_SUPPORTED
static pthread_mutex_t *m;
static int request, answered, gone;

/* The next owner. */
static void *dispose(void *arg)
{
	for (int seen = 0;; seen++) {
		while (LOAD(request) == seen)
			sched_yield();
		if (LOAD(request) < 0)
			return NULL;
		if (!gone && !pthread_mutex_trylock(m)) {
			unlock(m);
			CHECK_EQ(pthread_mutex_destroy(m), 0);
			CHECK_EQ(munmap(m, 4096), 0);
			gone = 1;
		}
		STORE(answered, seen + 1);
	}
}

static void after_each(void)
{
	int n = ADD(request, 1);

	while (LOAD(answered) != n)
		sched_yield();
}

static void *time_out(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 3000);

	CHECK_EQ(pthread_mutex_timedlock(m, &ts), ETIMEDOUT);
	return NULL;
}

/* waited: somebody has waited for the lock, in vain, so that the unlock has a reason to wake. */
static void run(int type, int waited, int nested)
{
	pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
	pthread_t t;

	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	mutex_of_type(m, type);
	request = answered = gone = 0;
	t = start(dispose, NULL);
	if (nested)
		lock(&other);
	lock(m);
	if (waited)
		join(start(time_out, NULL));
	step_begin(after_each);
	pthread_mutex_unlock(m);
	step_end();
	CHECK(gone);
	STORE(request, -1);
	join(t);
	if (nested)
		unlock(&other);
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};

	check_begin(argv[0], 20);
	for (int i = 0; i < 16; i++)
		run(types[i % 4], i & 4, i & 8);
	return 0;
}
#endif
