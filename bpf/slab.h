/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The argument of slab.bpf.c. */
#ifndef FG_SLAB_H
#define FG_SLAB_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define FG_SLAB_NAME 32

struct fg_slab {
	__u64 address;
	char name[FG_SLAB_NAME]; /* "": in none */
};

#endif
