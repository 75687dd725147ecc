/* SPDX-License-Identifier: MIT */
/*
 * pthread_once and call_once: one call however many threads come at once, none
 * returns before it has; a cancelled routine has not been called; the child of a fork
 * in the middle of it calls it itself, also one by a signal handler of a thread that waits for it,
 * in any instruction of the wait; one inside the other; and one call where another thread has come,
 * called it and gone between any two instructions of a first.
 */
#define STEP_OR_ELSE
#include "../tools/step.h"

#include <threads.h>

static pthread_once_t once_ = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static int calls, inside, done;

static void slow_routine(void)
{
	ADD(calls, 1);
	sleep_us(2000);
	STORE(done, 1);
}

static void *by_posix(void *arg)
{
	CHECK_EQ(pthread_once(&once_, slow_routine), 0);
	CHECK_EQ(LOAD(done), 1);
	return arg;
}

static void *by_c11(void *arg)
{
	call_once(&flag, slow_routine);
	CHECK_EQ(LOAD(done), 1);
	return arg;
}

static void many(void *(*f)(void *))
{
	pthread_t t[8];

	calls = done = 0;
	for (int i = 0; i < 8; i++)
		t[i] = start(f, NULL);
	for (int i = 0; i < 8; i++)
		join(t[i]);
	CHECK_EQ(calls, 1);
}

static void nothing(void)
{
	ADD(calls, 1);
}

static void nested(void)
{
	CHECK_EQ(pthread_once(&inner, nothing), 0);
	CHECK_EQ(LOAD(calls), 1);
}

static void sleeps(void)
{
	STORE(inside, 1);
	for (;;)
		pause();
}

static void *to_be_cancelled(void *arg)
{
	(void)arg;
	pthread_once(&once_, sleeps);
	CHECK(!"returned");
	return NULL;
}

static void cancelled(void)
{
	pthread_t victim, other;

	once_ = PTHREAD_ONCE_INIT;
	inside = calls = done = 0;
	victim = start(to_be_cancelled, NULL);
	while (!LOAD(inside))
		sleep_us(100);
	other = start(by_posix, NULL);
	sleep_us(10000);
	CHECK_EQ(LOAD(calls), 0);
	CHECK_EQ(pthread_cancel(victim), 0);
	CHECK(join(victim) == PTHREAD_CANCELED);
	join(other);
	CHECK_EQ(calls, 1);
}

#ifdef STEP_SUPPORTED
static long at;

static void *comes_between(void *arg)
{
	CHECK_EQ(pthread_once(&once_, nothing), 0);
	return arg;
}

/* Where the thread that is stopped has not begun, or this would wait for it. */
static void let_another(void)
{
	if (step_count == at && LOAD(once_) == PTHREAD_ONCE_INIT)
		join(start(comes_between, NULL));
}

static void *stepwise(void *arg)
{
	do {
		at++;
		once_ = PTHREAD_ONCE_INIT;
		calls = 0;
		step_begin(let_another);
		CHECK_EQ(pthread_once(&once_, nothing), 0);
		step_end();
		CHECK_EQ(calls, 1);
	} while (at < step_count);
	CHECK(at > 10);
	return arg;
}
#endif

#ifdef STEP_SUPPORTED
static pid_t child_of_wait;
static int is_child, was_done;

static void waits_for_fork(void)
{
	ADD(calls, 1);
	STORE(inside, 1);
	/* A waiter that is asleep takes no steps. */
	for (int ms = 0; ms < 20 && !LOAD(child_of_wait); ms++)
		sleep_us(1000);
}

static void *at_it(void *arg)
{
	CHECK_EQ(pthread_once(&once_, waits_for_fork), 0);
	return arg;
}

static void fork_once(void)
{
	pid_t pid;

	if (step_count != at)
		return;
	pid = check_fork();
	is_child = !pid;
	was_done = LOAD(once_) == 2;
	STORE(child_of_wait, pid);
	step_ending = 1;
}

/* 0: it has fewer steps. */
static int wait_and_fork(void)
{
	pthread_t t;

	once_ = PTHREAD_ONCE_INIT;
	child_of_wait = inside = calls = 0;
	t = start(at_it, NULL);
	UNTIL(LOAD(inside));
	step_begin(fork_once);
	CHECK_EQ(pthread_once(&once_, nothing), 0);
	step_end();
	if (is_child) {
		CHECK_EQ(calls, was_done ? 1 : 2);
		CHECK_EQ(LOAD(once_), 2);
		_exit(0);
	}
	join(t);
	CHECK_EQ(calls, 1);
	if (child_of_wait)
		check_child(child_of_wait);
	return child_of_wait != 0;
}
#endif

static void forks(void)
{
	pid_t child = check_fork();

	if (!child) {
		CHECK_EQ(pthread_once(&once_, nothing), 0);
		CHECK_EQ(calls, 1);
		_exit(0);
	}
	check_child(child);
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 20);
	many(by_posix);
	many(by_c11);
	once_ = PTHREAD_ONCE_INIT;
	calls = 0;
	CHECK_EQ(pthread_once(&once_, nested), 0);
	cancelled();
#ifdef STEP_SUPPORTED
	join(start(stepwise, NULL));
	if (getenv("CHECK_PRELOAD")) /* asleep, glibc's child waits for ever */
		for (at = 1; at < 500 && wait_and_fork(); at += 3)
			;
#endif
	once_ = PTHREAD_ONCE_INIT;
	calls = 0;
	CHECK_EQ(pthread_once(&once_, forks), 0);
	return 0;
}
