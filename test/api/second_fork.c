/* SPDX-License-Identifier: MIT */
/*
 * The second runtime of a process, this program's own, beside the preload library's: in the child
 * of a fork, threads of the parent wait for nothing any more.
 */
#include "api.h"

enum { WAITERS = 4 };
static fg_mutex_t m, held;
static fg_cond_t c;
static fg_once_t once = FG_ONCE_INIT;
static int waiting, queued, go, begun, done;

static void *wait_for_go(void *arg)
{
	CHECK_EQ(fg_mutex_lock(&m), 0);
	ADD(waiting, 1);
	while (!go)
		CHECK_EQ(fg_cond_wait(&c, &m), 0);
	CHECK_EQ(fg_mutex_unlock(&m), 0);
	return NULL;
}

static void *pass(void *arg)
{
	ADD(queued, 1);
	CHECK_EQ(fg_mutex_lock(&held), 0);
	CHECK_EQ(fg_mutex_unlock(&held), 0);
	return NULL;
}

static void not_soon(void)
{
	STORE(begun, 1);
	UNTIL(LOAD(done));
}

static void soon(void)
{
	done = 2;
}

static void *call_once(void *arg)
{
	CHECK_EQ(fg_once(&once, not_soon), 0);
	return NULL;
}

/* All that wait now are on the condition variable's list when the mutex is free. */
static void wait_for(int n)
{
	UNTIL(LOAD(waiting) == n);
	CHECK_EQ(fg_mutex_lock(&m), 0);
	CHECK_EQ(fg_mutex_unlock(&m), 0);
}

static void child(void)
{
	pthread_t t;

	CHECK_EQ(fg_mutex_unlock(&held), 0);
	t = start(pass, NULL);
	join(t);
	waiting = 0;
	t = start(wait_for_go, NULL);
	wait_for(1);
	go = 1;
	/* To the one that is here, not to the first of the parent's. */
	CHECK_EQ(fg_cond_signal(&c), 0);
	join(t);
	CHECK_EQ(fg_cond_destroy(&c), 0);
	CHECK_EQ(fg_once(&once, soon), 0);
	CHECK_EQ(done, 2);
}

int main(int argc, char **argv)
{
	pthread_t t[2 * WAITERS + 1];

	api_begin(argv[0], 30);
	CHECK_EQ(fg_mutex_lock(&held), 0);
	for (int i = 0; i < WAITERS; i++) {
		t[i] = start(wait_for_go, NULL);
		t[WAITERS + i] = start(pass, NULL);
	}
	t[2 * WAITERS] = start(call_once, NULL);
	wait_for(WAITERS);
	UNTIL(LOAD(queued) == WAITERS && LOAD(begun));
	for (int i = 0; i < 10; i++) {
		pid_t pid;

		sleep_us(100);
		pid = check_fork();
		if (!pid) {
			child();
			_exit(0);
		}
		check_child(pid);
	}
	CHECK_EQ(fg_mutex_unlock(&held), 0);
	STORE(done, 1);
	CHECK_EQ(fg_mutex_lock(&m), 0);
	go = 1;
	CHECK_EQ(fg_mutex_unlock(&m), 0);
	CHECK_EQ(fg_cond_broadcast(&c), 0);
	for (int i = 0; i <= 2 * WAITERS; i++)
		join(t[i]);
	return 0;
}
