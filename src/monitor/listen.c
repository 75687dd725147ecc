// SPDX-License-Identifier: MIT
/*
 * The monitor's socket.  As a rule any user may connect: a client's identity comes
 * from the kernel, and what it may have does not depend on the path's permissions.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "abi/socket.h"
#include "monitor/monitor.h"

/* How long another monitor may be between bind() and listen().  Not varied. */
#define LISTENS_WITHIN_NS 200000000u
#define LISTENS_LOOK_NS	  1000000u

/* Refused, and until then the same socket was there? */
static bool stays_refused(int fd, const struct sockaddr_un *addr, socklen_t len)
{
	struct stat first, st;

	if (lstat(addr->sun_path, &first))
		return false;
	for (uint32_t ns = 0; ns < LISTENS_WITHIN_NS; ns += LISTENS_LOOK_NS) {
		usleep(LISTENS_LOOK_NS / 1000);
		if (!connect(fd, (const struct sockaddr *)addr, len) || errno != ECONNREFUSED)
			return false;
	}
	/* Numbers are used again. */
	return !lstat(addr->sun_path, &st) && st.st_dev == first.st_dev &&
	       st.st_ino == first.st_ino && st.st_ctim.tv_sec == first.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == first.st_ctim.tv_nsec;
}

/*
 * A path that nobody listens on is left over from a monitor that was killed, or that of one which
 * has just bound it.  The lock below does not tell: a path is one for all network namespaces, and
 * each has abstract names of its own.
 */
static int remove_stale(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	int err = -EADDRINUSE;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, len) && !lstat(addr->sun_path, &st) &&
	    S_ISSOCK(st.st_mode)) {
		if (errno == ECONNREFUSED && stays_refused(fd, addr, len))
			err = unlink(addr->sun_path) ? FG_STALE : 0;
		else if (errno == EACCES) /* nobody can tell whether somebody listens there */
			err = -EACCES;
	}
	close(fd);
	return err;
}

/*
 * The mode is the socket's from the beginning: as soon as it is there, who may write to the folder
 * can put a symbolic link in its place, and chmod() follows that.
 */
static int bind_as(int fd, const struct sockaddr_un *addr, socklen_t len, unsigned mode)
{
	mode_t old = umask(~mode & 0777);
	int err = bind(fd, (const struct sockaddr *)addr, len) ? -errno : 0;

	umask(old);
	return err;
}

int fg_monitor_listen(const char *path, unsigned mode)
{
	struct sockaddr_un addr;
	socklen_t len = fg_socket_address(&addr, path);
	bool abstract = path[0] == '@';
	int fd, err;

	if (!len)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind_as(fd, &addr, len, mode);
	if (err == -EADDRINUSE && !abstract) {
		err = remove_stale(&addr, len);
		if (!err)
			err = bind_as(fd, &addr, len, mode);
	}
	if (!err && listen(fd, FG_BACKLOG))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int fg_monitor_give_away(const char *path, uid_t uid, gid_t gid)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISSOCK(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
		err = -EPERM;
	else if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH))
		err = -errno;
	close(fd);
	return err;
}

/*
 * The lock is a listening socket with an abstract name: it goes with the process, leaves no file
 * behind, and needs no folder to be written to at the end, when root is given up.  Any user may
 * take such a name first; so it holds only if its owner is root or this user, and a monitor starts
 * in spite of all others.
 *
 * The holder takes connections as long as it serves.  Its queue may be full, or it loads its
 * program: waiting connections are let in one by one.  Not varied.
 */
#define LETS_IN_WITHIN_NS 1000000000u

static bool is_held(const struct sockaddr_un *addr, socklen_t len)
{
	struct timeval patience = {.tv_sec = LETS_IN_WITHIN_NS / 1000000000u};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ucred holder;
	socklen_t size = sizeof(holder);
	bool held = fd >= 0;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* Between bind() and listen() of the holder. */
	for (uint32_t ns = 0; held && connect(fd, (const struct sockaddr *)addr, len);
	     ns += LISTENS_LOOK_NS) {
		held = errno == ECONNREFUSED && ns < LISTENS_WITHIN_NS;
		usleep(LISTENS_LOOK_NS / 1000);
	}
	if (held)
		held = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size) &&
		       fg_socket_trusts(holder.uid, geteuid());
	if (fd >= 0)
		close(fd);
	return held;
}

int fg_monitor_lock(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	struct stat st;
	socklen_t len;
	int fd, err = 0;

	if (path[0] == '@')
		return FG_NO_LOCK; /* bind() alone is atomic, and nothing is left behind */
	if (name && name - path + 1 >= (ptrdiff_t)sizeof(folder))
		return -ENAMETOOLONG;
	if (name)
		snprintf(folder, sizeof(folder), "%.*s", (int)(name - path + 1), path);
	if (stat(folder, &st))
		return -errno;
	/*
	 * However the path is written.  Too long a name is cut: then two of one folder may share a
	 * lock.
	 */
	snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "flexguard-monitor:%llx:%llx:%s",
		 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		 name ? name + 1 : path);
	len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(addr.sun_path + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&addr, len)) {
		if (!listen(fd, SOMAXCONN))
			return fd;
		err = -errno;
	} else if (errno != EADDRINUSE) {
		err = -errno;
	} else if (is_held(&addr, len)) {
		err = -EADDRINUSE;
	} else {
		err = FG_NO_LOCK;
	}
	close(fd);
	return err;
}
