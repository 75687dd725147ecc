/* SPDX-License-Identifier: MIT */
/*
 * For fork_early_handler: a library with a thread that waits for work, and a handler, registered by
 * its constructor, that starts it anew in the child of a fork.
 */
#include "../tools/check.h"

pthread_mutex_t handler_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t handler_cond = PTHREAD_COND_INITIALIZER;
int handler_work;
pthread_t handler_thread;

static int waits;

static void *work(void *arg)
{
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
	/* Until it waits, or is about to. */
	lock(&handler_mutex);
	while (!waits)
		pthread_cond_wait(&handler_cond, &handler_mutex);
	unlock(&handler_mutex);
}

__attribute__((constructor(101))) static void begin(void)
{
	CHECK_EQ(pthread_atfork(NULL, NULL, child), 0);
}
