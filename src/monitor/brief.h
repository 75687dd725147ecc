/* SPDX-License-Identifier: MIT */
/*
 * A packet of a stranger may carry descriptors, whose last reference goes where the packet is
 * received or thrown away.  A TCP socket with SO_LINGER makes close(2) wait there, for as long as
 * its owner likes (inet_release, net/ipv4/af_inet.c).
 */
#ifndef FG_MONITOR_BRIEF_H
#define FG_MONITOR_BRIEF_H

/*
 * From now on the kernel refuses descriptors that are sent to this socket, or to one that is
 * accepted from it and has not been connected before: where it can (Linux 6.16).
 */
void fg_brief_refuse(int fd);

/*
 * Between the two no system call of this thread sleeps for long.  Nothing is done for an accepted
 * socket that has refused descriptors all its life; -1: there may be others.
 */
void fg_brief_begin(int accepted);
void fg_brief_end(void);

void fg_brief_close(int accepted);
/* also with connections that have not been accepted, or packets of strangers */
void fg_brief_close_listener(int fd);

#endif
