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
static int may_have_mutex; /* threads of the parent, but for the one that forks */
static bool is_child;
static long at;
static pid_t child;
static pthread_t of_child;

/* Once in each round. */
static void *wait_too(void *arg)
{
	for (;;) {
		lock(&m);
		ADD(others, 1);
		while (!LOAD(go))
			pthread_cond_wait(&c, &m);
		unlock(&m);
		ADD(may_have_mutex, -1);
		UNTIL(!LOAD(go));
	}
	return arg;
}

/* Once the waiter has released the mutex. */
static void *let_go(void *arg)
{
	lock(&m);
	STORE(may_have_mutex, 2);
	STORE(go, 1);
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	unlock(&m);
	ADD(may_have_mutex, -1);
	return arg;
}

static void is_born(void)
{
	/* Here it would be theirs for ever. */
	if (LOAD(may_have_mutex))
		_exit(0);
	is_child = true;
	step_ending = 1;
	alarm(20);
	of_child = start(let_go, NULL);
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

	join(of_child); /* not by `go`, which the parent's may have set before the fork */
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
	static int round;
	pthread_t t;

	child = 0;
	STORE(go, 0);
	round++;
	UNTIL(LOAD(others) == round);
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
	UNTIL(!LOAD(may_have_mutex));
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
	start(wait_too, NULL);
	CHECK_EQ(pthread_atfork(NULL, NULL, is_born), 0);
	for (at = 1; wait_and_fork(); at += 2)
		;
	CHECK(at > 200);
	return 0;
}
#endif
