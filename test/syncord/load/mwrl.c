/* SPDX-License-Identifier: MIT */
/*
 * Each thread renames a file of its own in a directory of its own: all take rename_lock, once a
 * call (FxMark's MWRL).
 */
#include "load.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct {
	_Alignas(64) char one[32], other[32];
} files[THREADS_MAX];

static void prepare(int i)
{
	char folder[32];
	snprintf(folder, sizeof(folder), "mwrl%d", i);
	mkdir(folder, 0755);
	snprintf(files[i].one, sizeof(files[i].one), "mwrl%d/a", i);
	snprintf(files[i].other, sizeof(files[i].other), "mwrl%d/b", i);
	int fd = open(files[i].one, O_CREAT | O_WRONLY, 0644);
	if (fd < 0)
		fail(files[i].one);
	close(fd);
}

static int operation(int i)
{
	if (rename(files[i].one, files[i].other) || rename(files[i].other, files[i].one))
		fail("rename");
	return 2;
}
