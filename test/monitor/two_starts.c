// SPDX-License-Identifier: MIT
/*
 * A monitor that starts does not take the path of one that has bound it and does not listen yet,
 * nor another socket that has come meanwhile; it does take one of nobody.  Whether it has the lock
 * does not matter: another user may have taken its name, and the other monitor may be in another
 * network namespace.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "abi/socket.h"
#include "harness.h"

static char folder[] = "/tmp/flexguard-test-XXXXXX", path[64];
static int bound = -1;
static bool listens;
static int replaced_at; /* which look at the path; 0: none */

static int bind_path(void)
{
	struct sockaddr_un addr;
	socklen_t size = fg_socket_address(&addr, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, size));
	return fd;
}

/* In place of libc's: the other one goes on when it has been looked for once. */
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	long r = syscall(SYS_connect, fd, address, size);
	int err = errno, next;

	if (r && listens)
		CHECK(!listen(bound, 1));
	if (r && replaced_at && !--replaced_at) {
		CHECK(!unlink(path));
		next = bind_path();
		close(bound);
		bound = next;
	}
	errno = err;
	return (int)r;
}

static void clean_up(void)
{
	unlink(path);
	rmdir(folder);
}

/* The socket that is bound last is there still. */
static void check_kept(void)
{
	struct stat st;

	CHECK(fg_monitor_listen(path, 0666) == -EADDRINUSE);
	CHECK(!lstat(path, &st) && S_ISSOCK(st.st_mode));
	CHECK(!unlink(path));
	close(bound);
}

int main(void)
{
	int fd;

	test_begin();
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	atexit(clean_up);
	bound = bind_path();
	listens = true;
	check_kept();
	listens = false;
	bound = bind_path();
	replaced_at = 2;
	check_kept();
	close(bind_path());
	fd = fg_monitor_listen(path, 0666);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!unlink(path));
	return 0;
}
