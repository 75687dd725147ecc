/* SPDX-License-Identifier: MIT */
#include "cli/launch/told.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/protocol.h"

/* How often, where that is not clear at once: an exec beside other work takes some ms. */
#define ENVIRON_LOOKS	8 /* not varied, as the time between two */
#define ENVIRON_LOOK_NS 1000000

/*
 * Whether the process is in the middle of an exec, between two memories: then the end of its
 * environment (proc(5), stat, field 51) is 0.  That of one with none is not, as a monitor's.
 */
static bool is_between(const char *pid)
{
	char path[64], line[1024] = "", *field;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (f) {
		(void)!fgets(line, sizeof(line), f);
		fclose(f);
	}
	field = strrchr(line, ')'); /* the second, which may have spaces in it */
	for (int n = 2; field && n < 51; n++)
		field = strchr(field + 1, ' ');
	return field && !strtoull(field, NULL, 10);
}

/*
 * As long as the kernel lets arguments and environment be at an exec, and more.  A process says by
 * itself where its environment lies now (PR_SET_MM_MAP), and may say that it is all the memory that
 * it can have, which takes hours to read, or one name that is as long.
 */
#define ENVIRON_MOST (8u << 20)

/* Is `entry` in the environment of the process, or thread?  *any: it has one, and we may look. */
static bool has_entry(const char *of, const char *entry, bool *any)
{
	size_t length = strlen(entry), at = 0, seen = 0; /* at: so much of it is there already */
	char path[64], part[4096];
	bool given = false;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.48s/environ", of);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !given && seen < ENVIRON_MOST && (n = read(fd, part, sizeof(part))) > 0) {
		seen += (size_t)n;
		for (ssize_t i = 0; i < n && !given; i++) {
			given = !part[i] && at == length;
			if (!part[i])
				at = 0;
			else
				at = at < length && part[i] == entry[at] ? at + 1 : length + 1;
		}
	}
	*any |= seen > 0;
	if (fd >= 0)
		close(fd);
	return given;
}

/* As has_entry(), of a process whose main thread has ended, and others go on. */
static bool others_have_entry(const char *pid, const char *entry)
{
	bool any = false, given = false;
	struct dirent *d;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	tasks = opendir(path);
	while (tasks && !any && (d = readdir(tasks)))
		if (isdigit((unsigned char)d->d_name[0])) {
			snprintf(path, sizeof(path), "%.20s/task/%.20s", pid, d->d_name);
			given = has_entry(path, entry, &any);
		}
	if (tasks)
		closedir(tasks);
	return given;
}

/*
 * Whether the process was given `entry`, as NAME=VALUE.  False too where it may not be looked at.
 * *unclear: it has no environment, as for a moment in the middle of an exec; what has no executable
 * is no program, or the main thread of one that has ended.
 */
static bool was_given(const char *pid, const char *entry, bool *unclear)
{
	char path[64], target[8];
	bool any = false;

	if (has_entry(pid, entry, &any))
		return true;
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	if (any)
		return false;
	if (readlink(path, target, sizeof(target)) <= 0)
		return errno == ENOENT && others_have_entry(pid, entry);
	if (is_between(pid)) {
		*unclear = true;
		return false;
	}
	/* The exec may have gone on since: from now on what is looked at is the new memory. */
	return has_entry(pid, entry, &any);
}

/*
 * The kernel's are in no session.  Every process that was told of the monitor is in the command's
 * or a later one; but that may be one of a pid namespace around this one, and have no number here.
 */
static bool is_of_the_kernel(bool in_session, const char *pid)
{
	return in_session && !getsid(atoi(pid));
}

bool fg_is_told(const char *secret, bool in_session)
{
	char entry[sizeof(FG_SECRET_ENV) + 1 + FG_SECRET];
	const struct timespec moment = {.tv_nsec = ENVIRON_LOOK_NS};
	bool wanted = false, unclear = true;

	snprintf(entry, sizeof(entry), FG_SECRET_ENV "=%s", secret);
	for (int looks = 0; !wanted && unclear && looks < ENVIRON_LOOKS; looks++) {
		DIR *proc = opendir("/proc");
		struct dirent *d;

		if (looks)
			nanosleep(&moment, NULL);
		unclear = false;
		while (proc && !wanted && (d = readdir(proc)))
			wanted = isdigit((unsigned char)d->d_name[0]) &&
				 !is_of_the_kernel(in_session, d->d_name) &&
				 was_given(d->d_name, entry, &unclear);
		if (proc)
			closedir(proc);
	}
	return wanted;
}
