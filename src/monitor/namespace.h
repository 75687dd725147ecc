/* SPDX-License-Identifier: MIT */
/* Whether capabilities that this process has are the machine's: what eBPF asks for. */
#ifndef FG_NAMESPACE_H
#define FG_NAMESPACE_H

#include <stdbool.h>
#include <sys/stat.h>

#define FG_FIRST_USER_NAMESPACE 0xeffffffdu /* its inode: PROC_USER_INIT_INO of linux/proc_ns.h */

/*
 * False in a user namespace of a container or of unshare(1); true where there is no /proc to tell.
 */
static inline bool fg_in_first_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) || st.st_ino == FG_FIRST_USER_NAMESPACE;
}

#endif
