/* SPDX-License-Identifier: MIT */
/*
 * The program's clock is years off (faked_clock.c, or faketime with an argument "faketime"): each
 * timed function times out when that clock says so, not at once and not in years.  Only with the
 * library: glibc goes by the kernel's clock.
 */
#include "../tools/check.h"

#include <semaphore.h>
#include <threads.h>

#define WAIT_US 300000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER, native,
		       free_mutex;
static pthread_rwlock_t free_rwlock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, monotonic, shared;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static mtx_t mtx;
static cnd_t cnd;

/* What the kernel says; no library stands between. */
static long long kernel_us(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

static int on_cond(struct timespec *at)
{
	return pthread_cond_timedwait(&cond, &mutex, at);
}

static int on_monotonic(struct timespec *at)
{
	return pthread_cond_timedwait(&monotonic, &mutex, at);
}

static int on_shared(struct timespec *at)
{
	return pthread_cond_timedwait(&shared, &mutex, at);
}

static int on_clockwait(struct timespec *at)
{
	return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, at);
}

static int on_mutex(struct timespec *at)
{
	return pthread_mutex_timedlock(&held, at);
}

static int on_native(struct timespec *at)
{
	return pthread_mutex_timedlock(&native, at);
}

static int on_clocklock(struct timespec *at)
{
	return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, at);
}

static int on_read(struct timespec *at)
{
	return pthread_rwlock_timedrdlock(&rwlock, at);
}

static int on_write(struct timespec *at)
{
	return pthread_rwlock_timedwrlock(&rwlock, at);
}

static int on_clockwrite(struct timespec *at)
{
	return pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, at);
}

static int on_sem(struct timespec *at)
{
	return sem_timedwait(&sem, at) ? errno : 0;
}

static int on_sem_clock(struct timespec *at)
{
	return sem_clockwait(&sem, CLOCK_MONOTONIC, at) ? errno : 0;
}

static int on_mtx(struct timespec *at)
{
	return mtx_timedlock(&mtx, at) == thrd_timedout ? ETIMEDOUT : 0;
}

static int on_cnd(struct timespec *at)
{
	return cnd_timedwait(&cnd, (mtx_t *)&mutex, at) == thrd_timedout ? ETIMEDOUT : 0;
}

static const struct {
	const char *name;
	int (*wait)(struct timespec *at);
	clockid_t clock;
} waits[] = {
    {"cond_timedwait", on_cond, CLOCK_REALTIME},
    {"cond_timedwait, monotonic", on_monotonic, CLOCK_MONOTONIC},
    {"cond_timedwait, process-shared", on_shared, CLOCK_REALTIME},
    {"cond_clockwait", on_clockwait, CLOCK_MONOTONIC},
    {"mutex_timedlock", on_mutex, CLOCK_REALTIME},
    {"mutex_timedlock, process-shared", on_native, CLOCK_REALTIME},
    {"mutex_clocklock", on_clocklock, CLOCK_MONOTONIC},
    {"rwlock_timedrdlock", on_read, CLOCK_REALTIME},
    {"rwlock_timedwrlock", on_write, CLOCK_REALTIME},
    {"rwlock_clockwrlock", on_clockwrite, CLOCK_MONOTONIC},
    {"sem_timedwait", on_sem, CLOCK_REALTIME},
    {"sem_clockwait", on_sem_clock, CLOCK_MONOTONIC},
    {"mtx_timedlock", on_mtx, CLOCK_REALTIME},
    {"cnd_timedwait", on_cnd, CLOCK_REALTIME},
};
#define WAITS (int)(sizeof waits / sizeof waits[0])

static pthread_barrier_t all;

static void *holder(void *arg)
{
	lock(&held);
	lock(&native);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	CHECK_EQ(mtx_lock(&mtx), thrd_success);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}

static void *waiter(void *arg)
{
	int i = (int)(intptr_t)arg, r;
	long long began = kernel_us(), took; /* before it asks for the time: it may be preempted */
	struct timespec at = in_us(waits[i].clock, WAIT_US);

	lock(&mutex);
	r = waits[i].wait(&at);
	took = kernel_us() - began;
	unlock(&mutex);
	if (r != ETIMEDOUT)
		check_say("%s", waits[i].name);
	CHECK_EQ(r, ETIMEDOUT);
	/* Not early is a promise; not in years is the watchdog's. */
	if (took < WAIT_US)
		check_say("%s after %lld us", waits[i].name, took);
	CHECK(took >= WAIT_US);
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const by[] = {"-315360000", "315360000"};
	/* In a program that is linked at a fixed place, for all (clock_faked_fixed). */
	void *volatile in_program = (void *)clock_gettime;
	pthread_condattr_t cattr;
	pthread_t t[WAITS], h;
	struct timespec past;

	if (!getenv("CHECK_PRELOAD") && argc < 2)
		check_skip("glibc goes by the kernel's clock");
	if (!getenv("FAKED_BY") && argc < 2) {
		for (int i = 0; i < 2; i++) {
			pid_t pid = fork();

			if (!pid) {
				setenv("FAKED_BY", by[i], 1);
				execv(argv[0], argv);
				_exit(CHECK_SETUP);
			}
			check_child(pid);
		}
		return 0;
	}
	check_begin(argv[0], 30);
	CHECK(in_program);
	pthread_condattr_init(&cattr);
	pthread_condattr_setclock(&cattr, CLOCK_MONOTONIC);
	CHECK_EQ(pthread_cond_init(&monotonic, &cattr), 0);
	pthread_condattr_setclock(&cattr, CLOCK_REALTIME);
	pthread_condattr_setpshared(&cattr, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_cond_init(&shared, &cattr), 0);
	mutex_pshared(&native);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	CHECK_EQ(mtx_init(&mtx, mtx_timed), thrd_success);
	CHECK_EQ(cnd_init(&cnd), thrd_success);
	pthread_barrier_init(&all, NULL, 2);
	h = start(holder, NULL);
	pthread_barrier_wait(&all);
	for (intptr_t i = 0; i < WAITS; i++)
		t[i] = start(waiter, (void *)i);
	for (int i = 0; i < WAITS; i++)
		join(t[i]);
	pthread_barrier_wait(&all);
	join(h);
	/* A free one is taken whatever the time; what has passed has passed. */
	past = in_us(CLOCK_REALTIME, -1000000);
	CHECK_EQ(pthread_mutex_timedlock(&free_mutex, &past), 0);
	CHECK_EQ(pthread_rwlock_timedrdlock(&free_rwlock, &past), 0);
	lock(&mutex);
	CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
	if (argc < 2) { /* of these libfaketime, in front, makes other times */
		past.tv_nsec = -1;
		CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &past), EINVAL);
		past = (struct timespec){.tv_sec = INT64_MIN};
		CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
	}
	unlock(&mutex);
	return 0;
}
