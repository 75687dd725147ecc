/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bpf/object.bpf.c and its loader share: the way from a task or a file to a lock. */
#ifndef FG_OBJECT_H
#define FG_OBJECT_H

enum { FG_OBJECT_STEPS = 8 };

struct fg_object_way {
	__u32 fd;		       /* of the file */
	__u32 steps;		       /* pointers that are followed */
	__u32 offset[FG_OBJECT_STEPS]; /* where each lies in what the one before leads to */
	__u64 at;		       /* what the last one leads to; 0: nothing does */
	__u32 met;		       /* there is such a task, or file */
};

#endif
