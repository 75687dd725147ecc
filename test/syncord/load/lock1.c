/* SPDX-License-Identifier: MIT */
/*
 * Each thread locks and unlocks a file of its own by fcntl(): all take files_struct.file_lock of
 * their process, under which the kernel looks whether the descriptor has been closed meanwhile
 * (lock1 of will-it-scale).  Once a lock; an unlock does not look.
 */
#include "load.h"

#include <fcntl.h>

static int fds[THREADS_MAX];

static void prepare(int i)
{
	char name[32];
	snprintf(name, sizeof(name), "lock1-%d", i);
	fds[i] = open(name, O_CREAT | O_RDWR, 0644);
	if (fds[i] < 0)
		fail(name);
}

static int operation(int i)
{
	struct flock region = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4};
	if (fcntl(fds[i], F_SETLK, &region))
		fail("F_SETLK");
	region.l_type = F_UNLCK;
	if (fcntl(fds[i], F_SETLK, &region))
		fail("F_UNLCK");
	return 1;
}
