/* SPDX-License-Identifier: MIT */
#include "cli/launch/told.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/protocol.h"

/*
 * How often, where that is not clear at once: an exec beside other work takes some ms, and longer
 * where its CPU or a disk is busy: then it stays unclear.
 */
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

enum told {
	NOT_TOLD, /* or it may not be looked at */
	TOLD,
	NO_PROGRAM, /* it has ended, also since it was listed, or is one of the kernel */
	BETWEEN	    /* in the middle of an exec it has no environment for a moment */
};

/* Whether the process was given `entry`, as NAME=VALUE. */
static enum told was_given(const char *pid, const char *entry)
{
	char path[64], target[8];
	bool any = false;

	if (has_entry(pid, entry, &any))
		return TOLD;
	if (any)
		return NOT_TOLD;
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	if (readlink(path, target, sizeof(target)) <= 0) {
		if (errno != ENOENT)
			return kill(atoi(pid), 0) && errno == ESRCH ? NO_PROGRAM : NOT_TOLD;
		return others_have_entry(pid, entry) ? TOLD : NO_PROGRAM;
	}
	if (is_between(pid))
		return BETWEEN;
	/* The exec may have gone on since: from now on what is looked at is the new memory. */
	return has_entry(pid, entry, &any) ? TOLD : NOT_TOLD;
}

/*
 * The kernel's are in no session.  Every process that was told of the monitor is in the command's
 * or a later one; but that may be one of a pid namespace around this one, and have no number here.
 */
static bool is_of_the_kernel(bool in_session, const char *pid)
{
	return in_session && !getsid(atoi(pid));
}

/* PID_MAX_LIMIT, include/linux/threads.h. */
#define PIDS (4u << 20)

/*
 * One look at all processes that are not in `seen`.  Who has ended may have made another one since
 * the list was read, as a daemon does that forks twice: *again.  So may who is in the middle of an
 * exec be told: *unclear.
 */
static bool is_told_now(const char *entry, bool in_session, uint8_t *seen, bool *again,
			bool *unclear)
{
	DIR *proc = opendir("/proc");
	enum told told = NOT_TOLD;
	struct dirent *d;

	*again = *unclear = false;
	while (proc && told != TOLD && (d = readdir(proc))) {
		uint32_t pid = isdigit((unsigned char)d->d_name[0]) ? (uint32_t)atoi(d->d_name) : 0;

		if (!pid || pid >= PIDS || seen[pid / 8] & 1u << pid % 8 ||
		    is_of_the_kernel(in_session, d->d_name))
			continue;
		told = was_given(d->d_name, entry);
		if (told == BETWEEN)
			*unclear = true;
		else
			seen[pid / 8] |= (uint8_t)(1u << pid % 8);
		*again |= told == BETWEEN || told == NO_PROGRAM;
	}
	if (proc)
		closedir(proc);
	return told == TOLD;
}

bool fg_is_told(const char *secret, bool in_session)
{
	char entry[sizeof(FG_SECRET_ENV) + 1 + FG_SECRET];
	const struct timespec moment = {.tv_nsec = ENVIRON_LOOK_NS};
	bool told = false, again = true, unclear = false;
	uint8_t *seen = calloc(1, PIDS / 8);

	if (!seen)
		return true;
	snprintf(entry, sizeof(entry), FG_SECRET_ENV "=%s", secret);
	for (int looks = 0; !told && again && looks < ENVIRON_LOOKS; looks++) {
		if (unclear)
			nanosleep(&moment, NULL);
		told = is_told_now(entry, in_session, seen, &again, &unclear);
	}
	free(seen);
	return told || unclear;
}
