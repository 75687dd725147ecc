/* SPDX-License-Identifier: MIT */
/*
 * For libc_handle: a plugin whose constructor opens libc while another thread has begun to, and
 * waits for the loader.
 */
#include "../tools/check.h"

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

/* The state behind the name in /proc/self/task/TID/stat. */
static bool is_asleep(void)
{
	char path[64], line[256] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", LOAD(tid));
	f = fopen(path, "r");
	if (!f)
		return false; /* by now it has ended */
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	at = strrchr(line, ')');
	return at && at[2] == 'S';
}

__attribute__((constructor)) static void begin(void)
{
	plugin_thread = start(open_libc, NULL);
	for (int looks = 0; looks < 20 && !LOAD(done); sleep_us(200))
		looks = LOAD(tid) && is_asleep() ? looks + 1 : 0;
	CHECK(dlopen("libc.so.6", RTLD_NOW));
}
