/* SPDX-License-Identifier: MIT */
/*
 * A library to preload: a parent is kept off its CPU when it has forked, and its child is not; or,
 * with SLOW_FORK=before, when it is about to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
	pid_t (*libc_fork)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork"), pid;
	const char *slow = getenv("SLOW_FORK");

	if (!libc_fork)
		abort();
	if (slow && *slow == 'b')
		usleep(300000);
	pid = libc_fork();
	if (pid > 0 && !slow)
		usleep(300000);
	return pid;
}
