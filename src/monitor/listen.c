// SPDX-License-Identifier: MIT
/*
 * The monitor's socket.  As a rule any user may connect: who a client is comes
 * from the kernel, and what it may have does not depend on who can reach the path.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "monitor/monitor.h"

/* A path that nobody listens on is left over from a monitor that was killed. */
static int remove_stale(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	int err = -EADDRINUSE;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, len) && errno == ECONNREFUSED &&
	    !lstat(addr->sun_path, &st) && S_ISSOCK(st.st_mode) && !unlink(addr->sun_path))
		err = 0;
	close(fd);
	return err;
}

int fg_monitor_listen(const char *path, unsigned mode)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	bool abstract = path[0] == '@';
	size_t n = strlen(path);
	socklen_t len;
	int fd, err;

	/* An abstract name is not terminated; a path is. */
	if (n < 1 + (size_t)abstract || n + !abstract > sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, n);
	if (abstract)
		addr.sun_path[0] = '\0';
	len = offsetof(struct sockaddr_un, sun_path) + n + !abstract;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind(fd, (struct sockaddr *)&addr, len) ? -errno : 0;
	if (err == -EADDRINUSE && !abstract) {
		err = remove_stale(&addr, len);
		if (!err)
			err = bind(fd, (struct sockaddr *)&addr, len) ? -errno : 0;
	}
	if (!err && !abstract && chmod(path, mode))
		err = -errno;
	if (!err && listen(fd, SOMAXCONN))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Whether this is the file that the name leads to now. */
static bool is_at(int fd, const char *name)
{
	struct stat file, there;

	return !fstat(fd, &file) && !lstat(name, &there) && file.st_dev == there.st_dev && file.st_ino == there.st_ino;
}

/*
 * Who is done removes the file while it holds the lock.  Whoever opened it before then
 * gets a lock on a file that has no name any more, sees that, and opens the next one.
 */
int fg_monitor_lock(const char *path)
{
	char name[PATH_MAX], pid[16];
	int fd, err;

	if (path[0] == '@')
		return FG_NO_LOCK; /* bind() alone is atomic, and nothing is left behind */
	if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	for (;;) {
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
			close(fd);
			return err;
		}
		if (is_at(fd, name))
			break;
		close(fd);
	}
	/* For whoever looks; nothing depends on it. */
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (!ftruncate(fd, 0))
		(void)!write(fd, pid, strlen(pid));
	return fd;
}

void fg_monitor_unlock(const char *path, int fd)
{
	char name[PATH_MAX];

	if (fd < 0)
		return;
	if (snprintf(name, sizeof(name), "%s.lock", path) < (int)sizeof(name) && is_at(fd, name))
		unlink(name); /* where the folder is another's it stays, and does no harm */
	close(fd);
}
