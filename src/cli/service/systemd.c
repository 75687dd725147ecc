/* SPDX-License-Identifier: MIT */
/*
 * The two protocols of systemd that a daemon speaks: a listening socket handed
 * over (sd_listen_fds(3): descriptors from 3 on, counted by LISTEN_FDS, for the
 * process LISTEN_PID) and a word when it is ready (sd_notify(3): a datagram to the
 * socket NOTIFY_SOCKET).  Both are stable, and too small to link a library for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/socket.h"
#include "cli/service/service.h"

#define FIRST_FD 3

static int option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

int fg_systemd_listener(char *why, size_t size)
{
	const char *pid = secure_getenv("LISTEN_PID"), *fds = secure_getenv("LISTEN_FDS");

	if (!pid || !fds || strtol(pid, NULL, 10) != getpid())
		return -1;
	if (strcmp(fds, "1")) {
		snprintf(why, size, "%s sockets were passed (LISTEN_FDS): one is wanted", fds);
		return -EINVAL - 1;
	}
	if (option(FIRST_FD, SO_DOMAIN) != AF_UNIX || option(FIRST_FD, SO_TYPE) != SOCK_SEQPACKET ||
	    option(FIRST_FD, SO_ACCEPTCONN) != 1) {
		snprintf(
		    why, size,
		    "the socket that was passed must be ListenSequentialPacket= with a path or an "
		    "abstract name");
		return -EINVAL - 1;
	}
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return FIRST_FD;
}

void fg_systemd_notify(const char *state)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr;
	socklen_t size = path ? fg_socket_address(&addr, path) : 0;
	int fd;

	if (!size)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr, size);
	close(fd);
}
