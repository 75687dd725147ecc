/* SPDX-License-Identifier: MIT */
/*
 * Each timed function, on each clock: with a time that is further away than 64 bits of nanoseconds
 * hold it waits until it gets what it waits for; with one before 1970 it times out at once;
 * nanoseconds out of range are EINVAL where it would wait.  (Both together: glibc's mutexes time
 * out, the others and ours are EINVAL.)
 */
#include "../tools/check.h"

#include <semaphore.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER,
		       shared_held;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, monotonic, shared_cond;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static int go;

/* ---- the functions ------------------------------------------------------------------ */

static int timedlock(const struct timespec *at)
{
	return pthread_mutex_timedlock(&held, at);
}

static int clocklock(const struct timespec *at)
{
	return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, at);
}

static int clocklock_real(const struct timespec *at)
{
	return pthread_mutex_clocklock(&held, CLOCK_REALTIME, at);
}

static int timedlock_shared(const struct timespec *at)
{
	return pthread_mutex_timedlock(&shared_held, at);
}

static void unlock_held(void)
{
	unlock(&held);
}

static void unlock_shared(void)
{
	unlock(&shared_held);
}

static int on_cond(pthread_cond_t *c, clockid_t clock, int by_clock, const struct timespec *at)
{
	int r = 0;

	lock(&mutex);
	while (!go && !r)
		r = by_clock ? pthread_cond_clockwait(c, &mutex, clock, at) :
			       pthread_cond_timedwait(c, &mutex, at);
	unlock(&mutex);
	return r;
}

static int timedwait(const struct timespec *at)
{
	return on_cond(&cond, CLOCK_REALTIME, 0, at);
}

static int timedwait_monotonic(const struct timespec *at)
{
	return on_cond(&monotonic, CLOCK_MONOTONIC, 0, at);
}

static int timedwait_shared(const struct timespec *at)
{
	return on_cond(&shared_cond, CLOCK_REALTIME, 0, at);
}

static int clockwait(const struct timespec *at)
{
	return on_cond(&cond, CLOCK_MONOTONIC, 1, at);
}

static int clockwait_real(const struct timespec *at)
{
	return on_cond(&cond, CLOCK_REALTIME, 1, at);
}

static int timedrdlock(const struct timespec *at)
{
	return pthread_rwlock_timedrdlock(&rwlock, at);
}

static int timedwrlock(const struct timespec *at)
{
	return pthread_rwlock_timedwrlock(&rwlock, at);
}

static int clockrdlock(const struct timespec *at)
{
	return pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, at);
}

static int clockwrlock(const struct timespec *at)
{
	return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, at);
}

static void unlock_rwlock(void)
{
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
}

static int semaphore(const struct timespec *at)
{
	return sem_timedwait(&sem, at) ? errno : 0;
}

static int semaphore_monotonic(const struct timespec *at)
{
	return sem_clockwait(&sem, CLOCK_MONOTONIC, at) ? errno : 0;
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	int (*wait)(const struct timespec *at);
	void (*done)(void); /* what is got is given back */
} functions[] = {
    {"pthread_mutex_timedlock", timedlock, unlock_held},
    {"pthread_mutex_clocklock, monotonic", clocklock, unlock_held},
    {"pthread_mutex_clocklock, realtime", clocklock_real, unlock_held},
    {"pthread_mutex_timedlock, process-shared", timedlock_shared, unlock_shared},
    {"pthread_cond_timedwait", timedwait, nothing},
    {"pthread_cond_timedwait, monotonic", timedwait_monotonic, nothing},
    {"pthread_cond_timedwait, process-shared", timedwait_shared, nothing},
    {"pthread_cond_clockwait, monotonic", clockwait, nothing},
    {"pthread_cond_clockwait, realtime", clockwait_real, nothing},
    {"pthread_rwlock_timedrdlock", timedrdlock, unlock_rwlock},
    {"pthread_rwlock_timedwrlock", timedwrlock, unlock_rwlock},
    {"pthread_rwlock_clockrdlock, monotonic", clockrdlock, unlock_rwlock},
    {"pthread_rwlock_clockwrlock, monotonic", clockwrlock, unlock_rwlock},
    {"sem_timedwait", semaphore, nothing},
    {"sem_clockwait, monotonic", semaphore_monotonic, nothing},
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static void check_result(unsigned i, const struct timespec *at, int got, int want)
{
	if (got != want)
		check_say("%s until %lld s %ld ns: %d", functions[i].name, (long long)at->tv_sec,
			  at->tv_nsec, got);
	CHECK_EQ(got, want);
}

/* ---- far away ------------------------------------------------------------------------- */

static const struct timespec far[] = {
    {INT64_MAX, 999999999},
    {INT64_MAX, 0},
    {INT64_MAX - 1, 999999999},
    {INT64_MAX / 2, 1},
    {INT64_MAX / 1000000000, 999999999},
    {INT64_MAX / 1000000000 + 1, 0},
    {UINT32_MAX, 999999999},
    {1ll << 60, 0},
};
#define FAR (sizeof far / sizeof far[0])

struct waiter {
	unsigned function;
	struct timespec at;
	int back;
};

static unsigned waiting;

static void *wait_far(void *arg)
{
	struct waiter *w = arg;

	ADD(waiting, 1);
	check_result(w->function, &w->at, functions[w->function].wait(&w->at), 0);
	STORE(w->back, 1);
	functions[w->function].done();
	return NULL;
}

/* All functions and times at once: none may come back before it gets what it waits for. */
static void far_away(void)
{
	static struct waiter w[FUNCTIONS * FAR];
	static pthread_t t[FUNCTIONS * FAR];
	pthread_attr_t small;

	CHECK_EQ(pthread_attr_init(&small), 0);
	CHECK_EQ(pthread_attr_setstacksize(&small, 128 << 10), 0);
	for (unsigned i = 0; i < FUNCTIONS * FAR; i++) {
		w[i] = (struct waiter){i / FAR, far[i % FAR], 0};
		CHECK_EQ(pthread_create(&t[i], &small, wait_far, &w[i]), 0);
	}
	UNTIL(LOAD(waiting) == FUNCTIONS * FAR);
	sleep_us(20000);
	for (unsigned i = 0; i < FUNCTIONS * FAR; i++)
		if (LOAD(w[i].back))
			check_result(w[i].function, &w[i].at, ETIMEDOUT, 0);
	unlock_held();
	unlock_shared();
	unlock_rwlock();
	lock(&mutex);
	go = 1;
	CHECK_EQ(pthread_cond_broadcast(&cond), 0);
	CHECK_EQ(pthread_cond_broadcast(&monotonic), 0);
	CHECK_EQ(pthread_cond_broadcast(&shared_cond), 0);
	unlock(&mutex);
	for (unsigned i = 0; i < FUNCTIONS * FAR; i++)
		if (functions[i / FAR].wait == semaphore ||
		    functions[i / FAR].wait == semaphore_monotonic)
			CHECK_EQ(sem_post(&sem), 0);
	for (unsigned i = 0; i < FUNCTIONS * FAR; i++)
		join(t[i]);
}

/* ---- long ago, and no time at all ------------------------------------------------------ */

static void *at_once(void *arg)
{
	static const long long seconds[] = {
	    INT64_MIN, INT64_MIN + 1, INT64_MIN / 1000000000, -4294967296, -1, 0};
	static const long long any[] = {0, 1, 4294967296, INT64_MAX};
	static const long wrong[] = {-1, 1000000000, INT64_MIN, INT64_MAX};

	for (unsigned f = 0; f < FUNCTIONS; f++) {
		for (unsigned s = 0; s < sizeof seconds / sizeof seconds[0]; s++) {
			struct timespec at = {seconds[s], s % 2 ? 999999999 : 0};

			/* Twice: a second wait begins where the first has left the object. */
			check_result(f, &at, functions[f].wait(&at), ETIMEDOUT);
			check_result(f, &at, functions[f].wait(&at), ETIMEDOUT);
		}
		for (unsigned s = 0; s < sizeof any / sizeof any[0]; s++)
			for (unsigned n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
				struct timespec at = {any[s], wrong[n]};

				check_result(f, &at, functions[f].wait(&at), EINVAL);
			}
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_condattr_t cattr;

	check_begin(argv[0], 60);
	CHECK_EQ(pthread_condattr_init(&cattr), 0);
	CHECK_EQ(pthread_condattr_setclock(&cattr, CLOCK_MONOTONIC), 0);
	CHECK_EQ(pthread_cond_init(&monotonic, &cattr), 0);
	CHECK_EQ(pthread_condattr_setclock(&cattr, CLOCK_REALTIME), 0);
	CHECK_EQ(pthread_condattr_setpshared(&cattr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&shared_cond, &cattr), 0);
	mutex_pshared(&shared_held);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	lock(&held);
	lock(&shared_held);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	join(start(at_once, NULL));
	far_away();
	CHECK_EQ(pthread_mutex_trylock(&held), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&rwlock), 0);
	CHECK_EQ(sem_trywait(&sem), -1);
	return 0;
}
