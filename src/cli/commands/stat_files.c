/* SPDX-License-Identifier: MIT */
/* The files that a process has mapped, by the names that the kernel has for them: opened. */
#include "cli/commands/stat.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Where the names that /proc/PID/maps has for a container's files lead to them: its root, not this
 * command's.  "": as here, also in a chroot, since the kernel names files of this mount namespace
 * by this command's root.
 */
static char root[32];

void fg_stat_find_root(pid_t pid)
{
	char path[64];
	struct stat here, there;

	root[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat("/proc/self/ns/mnt", &here) || stat(path, &there) || here.st_ino == there.st_ino)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	if (!stat("/", &here) && !stat(path, &there) &&
	    (here.st_dev != there.st_dev || here.st_ino != there.st_ino))
		strcpy(root, path);
}

/*
 * Part by part: the kernel's names are without symbolic links, so one that is there by now may lead
 * anywhere, out of the container as well.
 */
static int find_file(const char *name)
{
	int at = open(root[0] ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_MAX + 1];

	for (name += strspn(name, "/"); at >= 0 && *name; name += strspn(name, "/")) {
		size_t length = strcspn(name, "/");
		int next = -1;

		if (length < sizeof(part)) {
			memcpy(part, name, length);
			part[length] = '\0';
			if (strcmp(part, ".."))
				next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		}
		close(at);
		at = next;
		name += length;
	}
	return at;
}

/*
 * What stands there is of the program's making.  A pipe would be waited for, and a device may do
 * something when it is opened; so it is known to be a file before.
 */
int fg_stat_open_file(const char *name, char **file, bool *trusted)
{
	char path[PATH_MAX];
	struct stat st;
	int found = find_file(name), fd = -1;

	*trusted = false;
	if (found >= 0 && !fstat(found, &st) && S_ISREG(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		*trusted = !root[0] && (st.st_uid == 0 || st.st_uid == geteuid());
	}
	if (found >= 0)
		close(found);
	if (fd >= 0) {
		snprintf(path, sizeof(path), "%s%s", root, name);
		*file = strdup(path);
	}
	return fd;
}
