/* SPDX-License-Identifier: MIT */
/*
 * Each thread has a table of open files of its own (unshare() of CLONE_FILES), and takes its
 * files_struct.file_lock: with many threads, of every files_struct that the kernel had in store,
 * that of a process that has ended among them.
 */
#include "load.h"

#include <fcntl.h>

static void prepare(int i)
{
	(void)i;
	if (unshare(CLONE_FILES))
		fail("unshare");
}

/* A descriptor is given under the lock, and taken back under it. */
static int operation(int i)
{
	(void)i;
	int fd = dup(STDOUT_FILENO);
	if (fd < 0 || close(fd))
		fail("dup");
	return 2;
}
