/* SPDX-License-Identifier: MIT */
#include "sys/descriptor.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "arch/arch.h"

long fg_descriptor_high(long fd)
{
	for (long from = FG_DESCRIPTOR_HIGH; fd >= 0 && from > fd; from /= 2) {
		long high = fg_syscall6(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from, 0, 0, 0);

		if (high < 0)
			continue;
		fg_syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
		return high;
	}
	return fd;
}
