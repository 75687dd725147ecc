/* SPDX-License-Identifier: MIT */
/*
 * A library to preload.  Nobody's environment can be opened until there is the file that
 * BLOCKED_UNTIL names, as it cannot be read where a process keeps its memory locked; or for a
 * minute.  Before it waits it makes the file BLOCKED_BEGINS.
 *
 * The process whose number is in the file BETWEEN_PID seems to be in the middle of an exec until
 * there is the file BETWEEN_UNTIL: it has no environment, and its stat is the file BETWEEN_STAT.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int opens(const char *path, int flags, ...);
typedef FILE *fopens(const char *path, const char *mode);

/* Names are those of files of any size, as everything here is built for these. */
static void *libc(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

static int is_there(const char *variable)
{
	const char *path = getenv(variable);

	return path && !access(path, F_OK);
}

static int is_between(const char *path, const char *what)
{
	fopens *libc_fopen = (fopens *)libc("fopen64");
	const char *file = getenv("BETWEEN_PID");
	FILE *f = file && !is_there("BETWEEN_UNTIL") ? libc_fopen(file, "r") : NULL;
	char its[64];
	int pid = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	snprintf(its, sizeof its, "/proc/%d/%s", pid, what);
	return !strcmp(its, path);
}

static void wait_at(const char *path)
{
	const char *end = strrchr(path, '/'), *begins = getenv("BLOCKED_BEGINS");

	if (!end || strcmp(end, "/environ") || !getenv("BLOCKED_UNTIL"))
		return;
	if (begins)
		close(((opens *)libc("open64"))(begins, O_CREAT | O_WRONLY, 0600));
	for (int ms = 0; ms < 60000 && !is_there("BLOCKED_UNTIL"); ms += 10)
		usleep(10000);
}

int open(const char *path, int flags, ...)
{
	opens *libc_open = (opens *)libc("open64");
	mode_t mode = 0;
	va_list more;

	if (flags & O_CREAT) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	wait_at(path);
	return libc_open(is_between(path, "environ") ? "/dev/null" : path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	const char *stat = getenv("BETWEEN_STAT");

	return ((fopens *)libc("fopen64"))(stat && is_between(path, "stat") ? stat : path, mode);
}
