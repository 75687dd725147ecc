/* SPDX-License-Identifier: MIT */
/*
 * Bullies and victims of one mutex, s_vfs_rename_mutex of their file system: each thread renames a
 * file of its own from one directory to another and back, for which the kernel takes the mutex, and
 * under it looks whether one directory is above the other.  Of odd threads, the bullies, both lie
 * DEPTH directories deep: they hold the mutex for as long as it takes to walk up there.  (The paper
 * has bullies with a directory of a million files, which takes a file system on a disk.)
 */
#include "load.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 5000 };

static int from[THREADS_MAX], to[THREADS_MAX];

static int deep(int i, const char *name, int depth)
{
	char folder[32];
	snprintf(folder, sizeof(folder), "scl%d%s", i, name);
	mkdir(folder, 0755);
	int at = open(folder, O_PATH | O_DIRECTORY);
	while (at >= 0 && depth-- > 0) {
		mkdirat(at, "d", 0755);
		int below = openat(at, "d", O_PATH | O_DIRECTORY);
		close(at);
		at = below;
	}
	if (at < 0)
		fail(folder);
	return at;
}

static void prepare(int i)
{
	from[i] = deep(i, "from", i % 2 ? DEPTH : 0);
	to[i] = deep(i, "to", i % 2 ? DEPTH : 0);
	int fd = openat(from[i], "f", O_CREAT | O_WRONLY, 0644);
	if (fd < 0)
		fail("f");
	close(fd);
}

static int operation(int i)
{
	if (renameat(from[i], "f", to[i], "f") || renameat(to[i], "f", from[i], "f"))
		fail("renameat");
	return 2;
}
