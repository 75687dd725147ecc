/* SPDX-License-Identifier: MIT */
/*
 * A wait on a condition variable that its thread leaves wherever it is at that moment: cancelled
 * asynchronously, or by pthread_exit() or siglongjmp() in a signal handler.  POSIX leaves open what
 * happens then; with glibc's it is as if the wait had been cancelled.  The mutex is held again, and
 * the condition variable knows nothing of that thread any more: the next signal is for one that
 * waits.  A process-shared one as well, with this private mutex.
 */
#include "../tools/asleep.h"

#include <setjmp.h>

enum how { CANCELLED, EXITS, JUMPS, HOWS };

static pthread_mutex_t m;
static pthread_cond_t c;
static int waits, left, token, tid;
static enum how how;
static sigjmp_buf out;

static void leave_here(int sig)
{
	(void)sig;
	if (how == EXITS)
		pthread_exit(NULL);
	siglongjmp(out, 1);
}

static void has_left(void *arg)
{
	CHECK_EQ(pthread_mutex_trylock(arg), EBUSY);
	left++;
	unlock(arg);
}

static void wait_for_ever(void)
{
	for (;;)
		pthread_cond_wait(&c, &m);
}

static void *wait_and_leave(void *arg)
{
	if (how == CANCELLED)
		CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	STORE(tid, (int)syscall(SYS_gettid));
	lock(&m);
	pthread_cleanup_push(has_left, &m);
	if (!sigsetjmp(out, 1)) {
		waits = 1;
		wait_for_ever();
	}
	pthread_cleanup_pop(1);
	return arg;
}

/* With glibc's perhaps without the mutex: while it takes that again. */
static void has_left_somewhere(void *arg)
{
	pthread_mutex_trylock(arg);
	left++;
	unlock(arg);
}

/* Cancelled at any instruction of a wait whose time is up, and at no other. */
static void *wait_often(void *arg)
{
	static const struct timespec past = {.tv_sec = 1};

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL), 0);
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	lock(&m);
	pthread_cleanup_push(has_left_somewhere, &m);
	STORE(waits, 1);
	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		pthread_cond_timedwait(&c, &m, &past);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	}
	pthread_cleanup_pop(1);
	return arg;
}

static void *wait_for_token(void *arg)
{
	lock(&m);
	waits = 1;
	while (!token)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	unlock(&m);
	return arg;
}

/* It has released the mutex. */
static pthread_t comes(void *(*f)(void *))
{
	pthread_t t;
	int came = 0;

	waits = token = left = 0;
	t = start(f, NULL);
	while (!came) {
		lock(&m);
		came = waits;
		unlock(&m);
	}
	return t;
}

static void another_comes(void)
{
	pthread_t t;

	CHECK_EQ(left, 1);
	CHECK_EQ(try_elsewhere(&m), 0);
	t = comes(wait_for_token);
	lock(&m);
	token = 1;
	CHECK_EQ(pthread_cond_signal(&c), 0);
	unlock(&m);
	join(t);
}

/* In the middle: it looks for the signal, or sleeps. */
static void leaves(void)
{
	pthread_t t = comes(wait_and_leave);
	long long before = thread_cpu_ns(t);

	UNTIL(is_asleep(LOAD(tid)) || thread_cpu_ns(t) > before + 300000);
	if (how == CANCELLED)
		CHECK_EQ(pthread_cancel(t), 0);
	else
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	join(t);
}

static void leaves_anywhere(unsigned spins)
{
	pthread_t t;

	waits = left = 0;
	t = start(wait_often, NULL);
	while (!LOAD(waits))
		;
	for (volatile unsigned n = 0; n < spins; n++)
		;
	CHECK_EQ(pthread_cancel(t), 0);
	join(t);
}

static void begin(int shared)
{
	mutex_of_type(&m, PTHREAD_MUTEX_NORMAL);
	if (shared)
		cond_pshared(&c);
	else
		CHECK_EQ(pthread_cond_init(&c, NULL), 0);
}

int main(int argc, char **argv)
{
	uint64_t rng;

	(void)argc;
	check_begin(argv[0], 60);
	rng = rnd_seed(0);
	signal(SIGUSR1, leave_here);
	for (int shared = 0; shared < 2; shared++) {
		begin(shared);
		for (int i = 0; i < 20 * HOWS; i++) {
			how = i % HOWS;
			leaves();
			another_comes();
		}
		CHECK_EQ(pthread_cond_destroy(&c), 0);
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
		/* New ones each time: glibc's are left with a waiter too many now and then. */
		for (int i = 0; i < 150; i++) {
			begin(shared);
			leaves_anywhere(rnd_below(&rng, 3000));
			another_comes();
		}
	}
	return 0;
}
