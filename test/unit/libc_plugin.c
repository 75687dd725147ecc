/* SPDX-License-Identifier: MIT */
/*
 * For libc_handle: a plugin whose constructor opens libc while another thread has begun to, and
 * waits for the loader.
 */
#include "../tools/asleep.h"

#include <stdbool.h>

pthread_t plugin_thread;
static int tid, done;

static void *open_libc(void *arg)
{
	STORE(tid, (int)gettid()); /* not by syscall(), which a library that wraps it looks up */
	CHECK(dlopen("libc.so.6", RTLD_NOW));
	STORE(done, 1);
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	plugin_thread = start(open_libc, NULL);
	for (int looks = 0; looks < 20 && !LOAD(done); sleep_us(200))
		looks = LOAD(tid) && is_asleep(LOAD(tid)) ? looks + 1 : 0;
	CHECK(dlopen("libc.so.6", RTLD_NOW));
}
