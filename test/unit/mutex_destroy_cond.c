/* SPDX-License-Identifier: MIT */
/*
 * A mutex with threads that wait with it on a condition variable is not destroyed: EBUSY while they
 * wait, while they are signalled or their time is up, and until the last of them has released it.
 * Robust ones are never asked.
 */
#include "../tools/check.h"

#include <threads.h>

enum { WAITERS = 3 };
static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int entered, go, returned, timed, asked;

static void *wait_for_go(void *arg)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 2000);

	lock(&m);
	entered++;
	while (!go) {
		if (timed) {
			int r = pthread_cond_timedwait(&c, &m, &ts);

			CHECK(r == 0 || r == ETIMEDOUT);
			if (r)
				break;
		} else {
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
		}
	}
	returned++;
	if (asked)
		CHECK_EQ(pthread_mutex_destroy(&m), EBUSY); /* it is held */
	unlock(&m);
	return NULL;
}

static void *cancelled(void *arg)
{
	lock(&m);
	entered++;
	pthread_cleanup_push((void (*)(void *))unlock, &m);
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return NULL;
}

static void enter(pthread_t *t, void *(*f)(void *), int n)
{
	entered = go = returned = 0;
	for (int i = 0; i < n; i++)
		t[i] = start(f, NULL);
	for (int all = 0; !all;) {
		lock(&m);
		all = entered == n;
		unlock(&m);
		sleep_us(20);
	}
}

static void run(const pthread_mutexattr_t *a, int want)
{
	pthread_t t[WAITERS];

	asked = want != 0;
	CHECK_EQ(pthread_mutex_init(&m, a), 0);
	enter(t, wait_for_go, WAITERS);
	if (want)
		CHECK_EQ(pthread_mutex_destroy(&m), want);
	lock(&m); /* still good */
	go = 1;
	CHECK_EQ(pthread_cond_signal(&c), 0);
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	if (want)
		CHECK_EQ(pthread_mutex_destroy(&m), want);
	unlock(&m);
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	CHECK_EQ(returned, WAITERS);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);

	CHECK_EQ(pthread_mutex_init(&m, a), 0);
	timed = 1;
	enter(t, wait_for_go, WAITERS);
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	timed = 0;
	CHECK_EQ(pthread_mutex_destroy(&m), 0);

	CHECK_EQ(pthread_mutex_init(&m, a), 0);
	enter(t, cancelled, 1);
	if (want)
		CHECK_EQ(pthread_mutex_destroy(&m), want);
	CHECK_EQ(pthread_cancel(t[0]), 0);
	join(t[0]);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

/* A wait that is refused leaves no trace. */
static void refused(void)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 100);

	mutex_of_type(&m, PTHREAD_MUTEX_ERRORCHECK);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), EPERM);
	ts.tv_nsec = -1;
	lock(&m);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), EINVAL);
	unlock(&m);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

/* mtx_destroy says nothing, so it is seen by what it leaves. */
static mtx_t mtx;
static cnd_t cnd;

static int c11_waiter(void *arg)
{
	CHECK_EQ(mtx_lock(&mtx), thrd_success);
	entered = 1;
	while (!go)
		CHECK_EQ(cnd_wait(&cnd, &mtx), thrd_success);
	CHECK_EQ(mtx_unlock(&mtx), thrd_success);
	return 0;
}

static void c11(int type)
{
	thrd_t t;

	CHECK_EQ(mtx_init(&mtx, type), thrd_success);
	CHECK_EQ(cnd_init(&cnd), thrd_success);
	entered = go = 0;
	CHECK_EQ(thrd_create(&t, c11_waiter, NULL), thrd_success);
	for (int in = 0; !in;) {
		CHECK_EQ(mtx_lock(&mtx), thrd_success);
		in = entered;
		CHECK_EQ(mtx_unlock(&mtx), thrd_success);
	}
	mtx_destroy(&mtx);
	CHECK_EQ(mtx_lock(&mtx), thrd_success);
	go = 1;
	CHECK_EQ(cnd_signal(&cnd), thrd_success);
	CHECK_EQ(mtx_unlock(&mtx), thrd_success);
	CHECK_EQ(thrd_join(t, NULL), thrd_success);
}

/* The same with a condition variable that is process-shared, though the mutex is not. */
static void with_shared_cond(void)
{
	pthread_condattr_t a;

	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&c, &a), 0);
	run(NULL, EBUSY);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	CHECK_EQ(pthread_cond_init(&c, NULL), 0);
}

int main(int argc, char **argv)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutexattr_t a;

	check_begin(argv[0], 30);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pthread_mutexattr_init(&a), 0);
		CHECK_EQ(pthread_mutexattr_settype(&a, types[i]), 0);
		run(&a, EBUSY);
		CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
		run(&a, EBUSY);
		CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_NONE), 0);
		CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
		run(&a, EBUSY);
		CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
		run(&a, 0);
	}
	refused();
	c11(mtx_plain);
	c11(mtx_recursive);
	with_shared_cond();
	return 0;
}
