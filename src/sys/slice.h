/* SPDX-License-Identifier: MIT */
/*
 * Time-slice extension: a thread asks the kernel not to take it off its CPU just now, and gives the
 * CPU back by itself soon after, if it was asked to.  Linux 7.0,
 * Documentation/userspace-api/rseq.rst; the numbers are part of its ABI, and are not in the headers
 * of older systems.
 */
#ifndef FG_SLICE_H
#define FG_SLICE_H

/* prctl(2): include/uapi/linux/prctl.h */
#define FG_PR_RSEQ_SLICE   79
#define FG_RSEQ_SLICE_GET  1
#define FG_RSEQ_SLICE_SET  2
#define FG_RSEQ_SLICE_EXT  1 /* the argument of SET */
#define FG_SYS_SLICE_YIELD 471
/* offset in struct rseq: request, granted, two reserved bytes */
#define FG_RSEQ_SLICE_CTRL 28

#endif
