/* SPDX-License-Identifier: MIT */
/* File descriptors 0, 1 and 2, and those that are not. */
#ifndef FG_CLI_DESCRIPTORS_H
#define FG_CLI_DESCRIPTORS_H

int fg_fd_high(int fd);	 /* the same file, close-on-exec, never 0, 1 or 2 */
void fg_fd_null(int fd); /* 0, 1 or 2: /dev/null */

/* Those of 0, 1 and 2 that are closed stay of no use, and no other file takes their place. */
void fg_fds_reserve(void);

#endif
