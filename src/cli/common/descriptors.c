/* SPDX-License-Identifier: MIT */
#include "cli/common/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

void fg_fd_null(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null == fd) /* it was closed */
		fcntl(fd, F_SETFD, 0);
	if (null >= 0 && null != fd) {
		dup2(null, fd);
		close(null);
	}
}

/* Opened the other way round, so that who reads or writes hears of it (as gnulib's stdopen). */
void fg_fds_reserve(void)
{
	static const int mode[] = {O_WRONLY, O_RDONLY, O_RDONLY};

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) < 0)
			return;
}

int fg_fd_high(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (fd >= 0)
		close(fd);
	return high;
}
