/* SPDX-License-Identifier: MIT */
/*
 * The library's life in a process.  Nothing depends on the constructor having
 * run: locks taken before it work, on the fallback policy.
 */
#include <errno.h>
#include <pthread.h>

#include "lock/thread.h"
#include "sys/env.h"
#include "sys/monitor_client.h"

static void child_of_fork(void)
{
	fg_threads_after_fork();
	fg_monitor_forget();
}

__attribute__((constructor)) static void start(void)
{
	int saved = errno;

	fg_threads_setup();
	fg_env_read();
	fg_stats_open();
	pthread_atfork(NULL, NULL, child_of_fork);
	/* Here and not at the first contended lock: the program may give up the right to do so later. */
	fg_monitor_register();
	errno = saved;
}
