// SPDX-License-Identifier: MIT
#include "monitor/iterator.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

int fg_run_iterator(int link_fd)
{
	char none[64];
	ssize_t n;
	int fd = bpf_iter_create(link_fd);

	if (fd < 0)
		return -errno;
	do
		n = read(fd, none, sizeof(none));
	while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}
