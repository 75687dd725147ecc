/* SPDX-License-Identifier: MIT */
/*
 * A packet of a stranger may carry descriptors, whose last reference goes where the packet is
 * received or thrown away.  A TCP socket with SO_LINGER makes close(2) wait there, for as long as
 * its owner likes (inet_release, net/ipv4/af_inet.c).
 */
#ifndef FG_MONITOR_BRIEF_H
#define FG_MONITOR_BRIEF_H

/* Between the two no system call of this thread sleeps for long.  May be called from any thread. */
void fg_brief_begin(void);
void fg_brief_end(void);

/* close(), of a socket that strangers have written to. */
void fg_brief_close(int fd);

/* From now on the kernel refuses descriptors that are sent to it, where it can (Linux 6.16). */
void fg_brief_refuse(int fd);

#endif
