/* SPDX-License-Identifier: MIT */
/* A copy of the program that runs, to be started with other rights. */
#ifndef COPY_SELF_H
#define COPY_SELF_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Over what is at `path`.  After the CHECK of the test that includes this. */
static void copy_self(const char *path, mode_t mode)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	char buf[65536];
	ssize_t n;

	unlink(path);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	CHECK(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		CHECK(write(to, buf, (size_t)n) == n);
	CHECK(!n && !fchmod(to, mode));
	close(from);
	close(to);
}

#endif
