/* SPDX-License-Identifier: MIT */
/* A library to preload: a thread that is about to send itself a signal is kept off its CPU. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int raise(int sig)
{
	int (*libc_raise)(int) = (int (*)(int))dlsym(RTLD_NEXT, "raise");

	if (!libc_raise)
		abort();
	usleep(500000);
	return libc_raise(sig);
}
