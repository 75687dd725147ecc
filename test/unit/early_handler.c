/* SPDX-License-Identifier: MIT */
/*
 * For fork_early_handler: a library with a thread that waits for work, and a handler, registered by
 * its constructor, that starts it anew in the child of a fork.  OLD: linked before 2003, when
 * pthread_atfork() was libc's own.
 */
#include "../tools/asleep.h"

#include <stdbool.h>

#ifdef OLD
int old_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
__asm__(".symver old_atfork, pthread_atfork@GLIBC_2.2.5");
#define pthread_atfork old_atfork
#endif

pthread_mutex_t handler_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t handler_cond = PTHREAD_COND_INITIALIZER;
int handler_work;
pthread_t handler_thread;

static int waits, tid;

static void *work(void *arg)
{
	STORE(tid, (int)syscall(SYS_gettid));
	lock(&handler_mutex);
	waits = 1;
	pthread_cond_broadcast(&handler_cond);
	while (!handler_work)
		pthread_cond_wait(&handler_cond, &handler_mutex);
	unlock(&handler_mutex);
	return NULL;
}

static void child(void)
{
	handler_thread = start(work, NULL);
	/* Until it waits, and sleeps: a waiter that has not slept yet may look once more. */
	lock(&handler_mutex);
	while (!waits)
		pthread_cond_wait(&handler_cond, &handler_mutex);
	unlock(&handler_mutex);
	for (int looks = 0; looks < 20; sleep_us(200))
		looks = is_asleep(LOAD(tid)) ? looks + 1 : 0;
}

__attribute__((constructor(101))) static void begin(void)
{
	CHECK_EQ(pthread_atfork(NULL, NULL, child), 0);
}
