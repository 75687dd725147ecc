/* SPDX-License-Identifier: MIT */
/* A library to preload: a parent is kept off its CPU when it has forked, and its child is not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
	pid_t (*libc_fork)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork"), pid;

	if (!libc_fork)
		abort();
	pid = libc_fork();
	if (pid > 0)
		usleep(300000);
	return pid;
}
