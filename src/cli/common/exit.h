/* SPDX-License-Identifier: MIT */
/* Exit statuses of our own, those of env(1) and of test harnesses. */
#ifndef FG_CLI_EXIT_H
#define FG_CLI_EXIT_H

#include <errno.h>

#define FG_EXIT_SKIP	 77  /* the kernel, this build, or (demo) the machine's packages lack it */
#define FG_EXIT_OWN	 125 /* flexguard itself failed or refused */
#define FG_EXIT_NOEXEC	 126 /* found, but cannot be executed */
#define FG_EXIT_NOTFOUND 127

static inline int fg_exit_of(int err) /* -errno */
{
	return err == -ENOTSUP || err == -ENOSYS ? FG_EXIT_SKIP : FG_EXIT_OWN;
}

#endif
