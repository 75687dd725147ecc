/* SPDX-License-Identifier: MIT */
/*
 * A signal handler forks while its thread waits for a condition variable, beside another one, whose
 * stack is used for something else in the child.  There the wait goes on: a thread of the child
 * wakes it, by a signal after the handler, or its time passes.  Nothing is written to that stack,
 * and the condition variable is as good as new.
 */
#include "../tools/check.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { STACK = 1 << 20, FILL = 0x11 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static char *stack;
static int others, waits, go, parents_turn;
static pid_t child;
static bool is_child, times_out;

static void *wait_for_ever(void *arg)
{
	lock(&m);
	STORE(others, 1);
	for (;;)
		pthread_cond_wait(&c, &m);
	return arg;
}

static void *let_go(void *arg)
{
	sleep_us(50000); /* until the wait goes on, most likely */
	lock(&m);
	STORE(go, 1);
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	unlock(&m);
	return arg;
}

static void is_born(void)
{
	is_child = true;
	alarm(20);
	memset(stack, FILL, STACK);
	if (!times_out)
		start(let_go, NULL);
}

static void forks(int sig)
{
	pid_t pid = fork();

	if (pid)
		child = pid;
	CHECK(sig == SIGUSR1);
}

static void *parent(void *arg)
{
	UNTIL(LOAD(waits));
	lock(&m); /* so it waits */
	unlock(&m);
	sleep_us(20000); /* asleep, most likely */
	CHECK_EQ(pthread_kill(*(pthread_t *)arg, SIGUSR1), 0);
	UNTIL(LOAD(parents_turn) || LOAD(child));
	return let_go(NULL);
}

static void use_as_new(void)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 1000);

	for (int i = 0; i < 10; i++) {
		pthread_t t;

		STORE(go, 0);
		lock(&m);
		t = start(let_go, NULL);
		while (!LOAD(go))
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
		unlock(&m);
		join(t);
	}
	lock(&m);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &ts), ETIMEDOUT);
	unlock(&m);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
}

static void wait_and_fork(bool timed)
{
	struct timespec ts = in_us(CLOCK_REALTIME, 300000);
	pthread_t me = pthread_self(), t;
	int r = 0;

	times_out = timed;
	STORE(waits, 0);
	STORE(go, 0);
	STORE(child, 0);
	t = start(parent, &me);
	lock(&m);
	STORE(waits, 1);
	while (!LOAD(go) && r != ETIMEDOUT)
		r = timed ? pthread_cond_timedwait(&c, &m, &ts) : pthread_cond_wait(&c, &m);
	unlock(&m);
	if (is_child) {
		long changed = 0;

		for (int i = 0; i < STACK; i++)
			changed += stack[i] != FILL;
		CHECK_EQ(changed, 0);
		if (getenv("CHECK_PRELOAD")) /* glibc's counts the parent's waiters */
			use_as_new();
		_exit(0);
	}
	join(t);
	check_child(child);
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t t;

	(void)argc;
	check_begin(argv[0], 60);
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, STACK), 0);
	CHECK_EQ(pthread_create(&t, &attr, wait_for_ever, NULL), 0);
	UNTIL(LOAD(others));
	CHECK_EQ(pthread_atfork(NULL, NULL, is_born), 0);
	signal(SIGUSR1, forks);
	for (int i = 0; i < 3; i++) {
		wait_and_fork(false);
		wait_and_fork(true);
	}
	return 0;
}
