/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bpf/cache.bpf.c and its loader share: the slab cache that is looked for. */
#ifndef FG_CACHE_H
#define FG_CACHE_H

enum { FG_CACHE_NAME = 64 };

struct fg_cache {
	char name[FG_CACHE_NAME]; /* asked for */
	__u64 at;		  /* struct kmem_cache; 0: none has this name */
	__u32 bytes;		  /* of an object */
	__u32 kinds;		  /* caches that are this one: more than 1 were merged */
};

#endif
