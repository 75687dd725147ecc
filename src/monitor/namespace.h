/* SPDX-License-Identifier: MIT */
/* Whether this process's capabilities and numbers of processes are the machine's, as eBPF's are. */
#ifndef FG_NAMESPACE_H
#define FG_NAMESPACE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Their inodes: PROC_USER_INIT_INO and PROC_PID_INIT_INO of linux/proc_ns.h. */
#define FG_FIRST_USER_NAMESPACE 0xeffffffdu
#define FG_FIRST_PID_NAMESPACE	0xeffffffcu

/* False in one of a container or of unshare(1); true where there is no /proc to tell. */
static inline bool fg_in_first_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) || st.st_ino == FG_FIRST_USER_NAMESPACE;
}

static inline bool fg_in_first_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == FG_FIRST_PID_NAMESPACE;
}

#endif
