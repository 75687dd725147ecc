/* SPDX-License-Identifier: MIT */
#ifndef FG_MONITOR_ITERATOR_H
#define FG_MONITOR_ITERATOR_H

/*
 * Reading an iterator runs its program over all that it is attached to.  For programs that print
 * nothing: 0, or -errno.
 */
int fg_run_iterator(int link_fd);

#endif
