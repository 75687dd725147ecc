/* SPDX-License-Identifier: MIT */
/*
 * The address of the monitor's socket, and of systemd's, by the name that a user gives; and who is
 * believed there.
 */
#ifndef FG_SOCKET_H
#define FG_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * A path, or with '@' first an abstract name, which is not terminated.  Returns the address's size;
 * 0: that is no name, or one of more than 107 bytes.
 */
static inline socklen_t fg_socket_address(struct sockaddr_un *un, const char *name)
{
	bool abstract = name[0] == '@';
	size_t n = strlen(name);

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (n < 1 + (size_t)abstract || n >= sizeof(un->sun_path))
		return 0;
	memcpy(un->sun_path, name, n);
	if (abstract)
		un->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + !abstract);
}

/*
 * The first user to bind an abstract name has it: an ordinary one may wait there for root's
 * programs, and would be told where their memory is.  So the listener has to be root or this user.
 * A path's folder has an owner.
 */
static inline bool fg_socket_trusts(uid_t listener, uid_t user)
{
	return !listener || listener == user;
}

#endif
