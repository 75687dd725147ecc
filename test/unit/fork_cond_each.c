/* SPDX-License-Identifier: MIT */
/*
 * A signal handler forks in the middle of a wait for a condition variable, after every other
 * instruction of it, where another thread waits, too.  In the child the wait ends, by the broadcast
 * of a thread of the child or because it has been forgotten; and the condition variable is as good
 * as new.
 */
#include "../tools/step.h"

#ifdef STEP_SUPPORTED
#include <stdbool.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int others, go;
static bool is_child;
static long at;
static pid_t child;

static void *wait_for_ever(void *arg)
{
	lock(&m);
	STORE(others, 1);
	for (;;)
		pthread_cond_wait(&c, &m);
	return arg;
}

/* Once the waiter has released the mutex. */
static void *let_go(void *arg)
{
	lock(&m);
	STORE(go, 1);
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	unlock(&m);
	return arg;
}

static void is_born(void)
{
	is_child = true;
	step_ending = 1;
	alarm(20);
	start(let_go, NULL);
}

static void fork_once(void)
{
	pid_t pid;

	if (step_count != at)
		return;
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		child = pid;
}

static void use_as_new(void)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1);
	pthread_t t;

	UNTIL(LOAD(go));
	lock(&m);
	STORE(go, 0);
	t = start(let_go, NULL);
	while (!LOAD(go))
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
	unlock(&m);
	join(t);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
}

/* False: it has fewer steps. */
static bool wait_and_fork(void)
{
	pthread_t t;

	child = 0;
	STORE(go, 0);
	lock(&m);
	t = start(let_go, NULL);
	step_begin(fork_once);
	CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	step_end();
	unlock(&m);
	if (is_child) {
		use_as_new();
		_exit(0);
	}
	join(t);
	if (child)
		check_child(child);
	return child;
}

int main(int argc, char **argv)
{
	(void)argc;
	check_begin(argv[0], 60);
	if (!getenv("CHECK_PRELOAD"))
		check_skip("glibc's counts the parent's waiters in such a child");
	start(wait_for_ever, NULL);
	UNTIL(LOAD(others));
	CHECK_EQ(pthread_atfork(NULL, NULL, is_born), 0);
	for (at = 1; wait_and_fork(); at += 2)
		;
	CHECK(at > 200);
	return 0;
}
#endif
