/* SPDX-License-Identifier: MIT */
/*
 * A library to preload: nobody's environment can be opened until there is the file that
 * BLOCKED_UNTIL names, as it cannot be read where a process keeps its memory locked; or for a
 * minute.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* open64(), as everything here is built for files of any size. */
int open(const char *path, int flags, ...)
{
	int (*libc_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT,
											  "open64");
	const char *end = strrchr(path, '/'), *until = getenv("BLOCKED_UNTIL");
	mode_t mode = 0;
	va_list more;

	if (!libc_open)
		abort();
	if (flags & O_CREAT) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	for (int ms = 0;
	     until && end && !strcmp(end, "/environ") && ms < 60000 && access(until, F_OK);
	     ms += 10)
		usleep(10000);
	return libc_open(path, flags, mode);
}
