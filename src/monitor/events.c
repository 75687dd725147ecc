// SPDX-License-Identifier: MIT
/* What the loop (serve.c) is told of. */
#include <errno.h>
#include <sys/epoll.h>
#include "monitor/internal.h"

int fg_watch(struct fg_monitor *m, int fd, enum fg_event kind, uint32_t index)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | index};

	return epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}
