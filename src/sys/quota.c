/* SPDX-License-Identifier: MIT */
#include "sys/quota.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/arch.h"

#define PATH_SIZE 512

/* The beginning of a file, as a string; false: there is none. */
static bool read_file(const char *path, char *text, size_t size)
{
	long fd = fg_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0), n;

	if (fd < 0)
		return false;
	n = fg_syscall6(SYS_read, fd, (long)text, (long)size - 1, 0, 0, 0);
	fg_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Appends, or as much as has room: then there is no such file, but those of folders above it. */
static void append(char *path, const char *more, size_t length)
{
	size_t have = strlen(path), room = PATH_SIZE - 1 - have;

	if (length > room)
		length = room;
	memcpy(path + have, more, length);
	path[have + length] = '\0';
}

static bool read_in(const char *folder, const char *name, char *text, size_t size)
{
	char path[PATH_SIZE] = "";

	append(path, folder, strlen(folder));
	append(path, name, strlen(name));
	return read_file(path, text, size);
}

/* The kernel takes quotas of more CPUs than 32 bits count. */
static uint32_t thousandths(long quota, long period)
{
	if (quota <= 0 || period <= 0 || __builtin_mul_overflow(quota, FG_QUOTA_CPU, &quota) ||
	    quota / period >= FG_QUOTA_NONE)
		return FG_QUOTA_NONE;
	return quota / period < 1 ? 1 : (uint32_t)(quota / period);
}

/* "max 100000", "150000 100000". */
static uint32_t of_folder(const char *folder, bool v2)
{
	char text[64], *end;
	long quota;

	if (!read_in(folder, v2 ? "/cpu.max" : "/cpu.cfs_quota_us", text, sizeof(text)))
		return FG_QUOTA_NONE;
	quota = strtol(text, &end, 10); /* "max" and -1: none */
	if (v2)
		return end == text ? FG_QUOTA_NONE : thousandths(quota, strtol(end, NULL, 10));
	if (!read_in(folder, "/cpu.cfs_period_us", text, sizeof(text)))
		return FG_QUOTA_NONE;
	return thousandths(quota, strtol(text, NULL, 10));
}

/* Of a folder and all above it, as far as they are mounted here. */
static uint32_t lowest(char *folder, size_t root, bool v2)
{
	uint32_t least = FG_QUOTA_NONE, quota;
	char *slash;

	for (;;) {
		quota = of_folder(folder, v2);
		least = quota < least ? quota : least;
		slash = strrchr(folder, '/');
		if (!slash || slash < folder + root)
			return least;
		*slash = '\0';
	}
}

static bool has_word(const char *list, size_t length, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= length; i++)
		if (!strncmp(list + i, word, n) && (!i || list[i - 1] == ',') &&
		    (i + n == length || list[i + n] == ','))
			return true;
	return false;
}

/*
 * "/..", "/../x": beside the root of this cgroup namespace (cgroup_namespaces(7)), which is what is
 * mounted here, or above it.  What limits that cannot be seen.
 */
static bool is_outside(const char *path)
{
	return !strncmp(path, "/..", 3) && (!path[3] || path[3] == '/');
}

/* A line is "number:controllers:path"; version 2's is "0::path". */
static uint32_t of_line(const char *line, const char *mounted)
{
	char folder[PATH_SIZE] = "", *controllers = strchr(line, ':'), *path;
	size_t root;
	bool v2;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return FG_QUOTA_NONE;
	controllers++;
	v2 = path == controllers;
	if (!v2 && !has_word(controllers, (size_t)(path - controllers), "cpu"))
		return FG_QUOTA_NONE;
	path++;
	if (is_outside(path))
		return FG_QUOTA_NONE;
	append(folder, mounted, strlen(mounted));
	if (!v2)
		append(folder, "/cpu", 4);
	root = strlen(folder);
	append(folder, path, strlen(path));
	return lowest(folder, root, v2);
}

/* Version 1 has a line for each controller: in all they may be longer than `text`, no line is. */
uint32_t fg_quota_read(const char *list, const char *mounted)
{
	long fd = fg_syscall6(SYS_openat, AT_FDCWD, (long)list, O_RDONLY | O_CLOEXEC, 0, 0, 0), n;
	uint32_t least = FG_QUOTA_NONE, quota;
	char text[4096 + 256], *line, *end;
	size_t have = 0;

	if (fd < 0)
		return FG_QUOTA_NONE;
	do {
		n = fg_syscall6(SYS_read, fd, (long)(text + have), (long)(sizeof(text) - 1 - have),
				0, 0, 0);
		have += n > 0 ? (size_t)n : 0;
		text[have] = '\0';
		/* The last one may have no end. */
		for (line = text; (end = strchr(line, '\n')) || (n <= 0 && *line);
		     line = end ? end + 1 : text + have) {
			if (end)
				*end = '\0';
			quota = of_line(line, mounted);
			least = quota < least ? quota : least;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have + 1);
	} while (n > 0);
	fg_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
	return least;
}

uint32_t fg_quota(void)
{
	return fg_quota_read("/proc/self/cgroup", "/sys/fs/cgroup");
}
