/* SPDX-License-Identifier: MIT */
/*
 * Waiters that are signalled by the owner of their mutex while others sleep for it: all return when
 * it is released, by whatever releases it: an unlock, a wait on another condition variable, an
 * unlock by another thread, or, in the parent of a fork, an unlock after the child's.  Each
 * condition variable is destroyed before its waiter returns.  The child has no such waiters, and
 * may have done away with their stacks.
 */
#include <sys/mman.h>

#include "../tools/check.h"

enum { WAITERS = 100, STACK = 256 * 1024 };
static char *stacks;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond[WAITERS], other = PTHREAD_COND_INITIALIZER;
static int ready[WAITERS], waiting, returned, locked;
static enum how { BY_UNLOCK, BY_WAIT, BY_ANOTHER, AFTER_FORK, BY_BROADCAST, WAYS } how;

static void *wait_for_mine(void *arg)
{
	int i = (int)(intptr_t)arg;

	lock(&m);
	waiting++;
	while (!ready[i])
		CHECK_EQ(pthread_cond_wait(&cond[how == BY_BROADCAST ? 0 : i], &m), 0);
	returned++;
	unlock(&m);
	return NULL;
}

static pthread_t start_waiter(int i)
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, stacks + (size_t)i * STACK, STACK), 0);
	CHECK_EQ(pthread_create(&t, &attr, wait_for_mine, (void *)(intptr_t)i), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
	return t;
}

static void *sleep_for_the_mutex(void *arg)
{
	ADD(locked, 1);
	lock(&m);
	unlock(&m);
	CHECK_EQ(pthread_cond_signal(&other), 0);
	return NULL;
}

static void *unlock_for_another(void *arg)
{
	unlock(&m);
	return NULL;
}

static void release(void)
{
	struct timespec soon = in_us(CLOCK_REALTIME, 100000);
	pid_t child;

	switch (how) {
	case BY_WAIT:
		pthread_cond_timedwait(&other, &m, &soon);
		unlock(&m);
		break;
	case BY_ANOTHER: in_thread(unlock_for_another, NULL); break;
	case AFTER_FORK:
		child = check_fork();
		if (!child) {
			CHECK_EQ(munmap(stacks, (size_t)WAITERS * STACK), 0);
			unlock(&m);
			lock(&m);
			unlock(&m);
			_exit(0);
		}
		check_child(child);
		unlock(&m);
		break;
	default: unlock(&m);
	}
}

static void run(void)
{
	pthread_t t[WAITERS], sleeper;

	waiting = returned = locked = 0;
	for (int i = 0; i < WAITERS; i++) {
		ready[i] = 0;
		CHECK_EQ(pthread_cond_init(&cond[i], NULL), 0);
		t[i] = start_waiter(i);
	}
	for (lock(&m); waiting < WAITERS; lock(&m)) {
		unlock(&m);
		sleep_us(1000);
	}
	unlock(&m);
	sleep_us(20000); /* they sleep; nobody may rely on that */
	lock(&m);
	sleeper = start(sleep_for_the_mutex, NULL);
	UNTIL(LOAD(locked));
	sleep_us(20000);
	for (int i = 0; i < WAITERS; i++)
		ready[i] = 1;
	if (how == BY_BROADCAST)
		CHECK_EQ(pthread_cond_broadcast(&cond[0]), 0);
	for (int i = 0; i < WAITERS; i++) {
		if (how != BY_BROADCAST)
			CHECK_EQ(pthread_cond_signal(&cond[i]), 0);
		CHECK_EQ(pthread_cond_destroy(&cond[i]), 0);
		memset(&cond[i], 0xa5, sizeof(cond[i]));
	}
	CHECK_EQ(returned, 0); /* it is ours until now */
	release();
	for (int i = 0; i < WAITERS; i++)
		join(t[i]);
	join(sleeper);
	CHECK_EQ(returned, WAITERS);
}

int main(int argc, char **argv)
{
	check_begin(argv[0], 30);
	stacks = mmap(NULL, (size_t)WAITERS * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stacks != MAP_FAILED);
	for (how = BY_UNLOCK; how < WAYS; how++)
		run();
	return 0;
}
