// SPDX-License-Identifier: MIT
/*
 * How much memory the monitor may take, and how many descriptors.  The kernel charges slot arrays
 * to the monitor's cgroup, and where that has no more, it does not refuse them: it kills the
 * monitor.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "monitor/internal.h"

static uint64_t number_in(const char *path)
{
	unsigned long long n;
	FILE *f = fopen(path, "re");

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%llu", &n) != 1) /* "max" */
		n = UINT64_MAX;
	fclose(f);
	return n;
}

/* The least in the files of these names of this cgroup, by its path, and of all above it. */
static uint64_t least(const char *mount, char *cgroup, const char *const name[2])
{
	uint64_t result = UINT64_MAX, limit;
	char path[PATH_MAX + 64], *end;

	for (;;) {
		for (int i = 0; i < 2 && name[i]; i++) {
			snprintf(path, sizeof(path), "%s%s/%s", mount, cgroup, name[i]);
			limit = number_in(path);
			result = limit < result ? limit : result;
		}
		end = strrchr(cgroup, '/');
		if (!end)
			return result;
		*end = 0;
	}
}

/*
 * Above memory.high the kernel kills nobody: who allocates waits there, for up to 2 s at a time,
 * and clients take a monitor for dead after a quarter of that.
 */
uint64_t fg_cgroup_memory(const char *root)
{
	static const char *const v1[2] = {"memory.limit_in_bytes"};
	static const char *const v2[2] = {"memory.max", "memory.high"};
	char path[256], line[PATH_MAX - sizeof(path)];
	uint64_t result = UINT64_MAX, limit;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		/* number:controllers:/path */
		char *controllers = strchr(line, ':'), *cgroup;
		bool unified;

		line[strcspn(line, "\n")] = 0;
		cgroup = controllers ? strchr(++controllers, ':') : NULL;
		if (!cgroup)
			continue;
		*cgroup++ = 0;
		unified = !*controllers;
		if (!unified && !strstr(controllers, "memory"))
			continue;
		snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s", root, unified ? "" : "/memory");
		limit = least(path, cgroup, unified ? v2 : v1);
		result = limit < result ? limit : result;
	}
	if (f)
		fclose(f);
	return result;
}

#define OWN_FILES 256u /* the monitor's own are below; not varied */

/*
 * The other half is for connections, a part of them with answers that were not read (unread.c): of
 * many users.  Of one program they need a quarter.
 */
uint64_t fg_files_to_share(bool one_program)
{
	struct rlimit files;
	rlim_t taken = 0;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return UINT64_MAX;
	/* Not up to the lowest that is free: libbpf leaves gaps. */
	for (rlim_t fd = 0; fd < OWN_FILES && fd < files.rlim_cur; fd++)
		taken += fcntl((int)fd, F_GETFD) >= 0;
	files.rlim_cur -= taken;
	return files.rlim_cur - files.rlim_cur / (one_program ? 4 : 2);
}

/*
 * Each has its connection, and the walk over its threads where they are many: a half of the other
 * half.  Where they had all of it, what is needed to answer another user was not to be had.
 */
uint32_t fg_clients_at_once(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 8 >= FG_MAX_CLIENTS)
		return FG_MAX_CLIENTS;
	return files.rlim_cur < 8 ? 1 : (uint32_t)files.rlim_cur / 8;
}
