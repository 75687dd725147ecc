/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the library's own, in a program that counts on the numbers of its own: that the
 * next one is the lowest which is free (POSIX, open()), that what it closes is nobody else's.
 *
 * The kernel gives the lowest one to whoever asks, so for two calls the library's is that, too.
 * There is one way round it: a thread that is cloned without its creator's table of descriptors
 * (CLOSE_RANGE_UNSHARE) and maps into the same memory.  It is a second thread in programs that
 * have one, for which setns(2) and unshare(2) then fail, it has no TLS of its own, and debuggers
 * see it; that is more than what it is for.
 */
#ifndef FG_DESCRIPTOR_H
#define FG_DESCRIPTOR_H

/*
 * Above what programs expect, and below the end of the table that each process begins with: as many
 * as a word has bits (NR_OPEN_DEFAULT of the kernel's fdtable.h).  A longer one is allocated, for
 * which a process with threads waits for RCU, some ms.  Not varied.
 */
#define FG_DESCRIPTOR_HIGH ((long)sizeof(long) * 8 * 3 / 4)

/*
 * Moves a descriptor that the kernel has just given, or returns -errno as it is.  Where there is no
 * number so high (RLIMIT_NOFILE) to half of that, and so on; where there is none at all it stays.
 */
long fg_descriptor_high(long fd);

#endif
