/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a mark (marks.h) says: arithmetic alone, which user space can test.
 *
 *	bits 0..3    kind: NONE, DEFERRED (not counted yet), PREEMPTED or BLOCKED
 *	bits 4..15   CPU that the thread is queued on; all set: 4095 or above
 *	bits 16..31  domain
 *	bits 32..63  groups of CPUs that the thread may use; 0: any CPU
 */
#ifndef FG_MARK_BITS_H
#define FG_MARK_BITS_H

enum mark_kind {
	MARK_NONE = 0,
	MARK_DEFERRED = 1,
	MARK_PREEMPTED = 2,
	MARK_BLOCKED = 3,
};

static __always_inline __u64 make_mark(__u32 kind, __u32 cpu, __u32 domain, __u32 groups)
{
	/* The highest stands for those above it, too: there is no counter for any of them. */
	cpu = cpu < 0xfff ? cpu : 0xfff;
	return kind | cpu << 4 | (domain & 0xffff) << 16 | (__u64)groups << 32;
}

static __always_inline __u32 mark_kind(__u64 mark)
{
	return mark & 0xf;
}

static __always_inline __u32 mark_cpu(__u64 mark)
{
	return (__u32)mark >> 4 & 0xfff;
}

static __always_inline __u32 mark_domain(__u64 mark)
{
	return (__u32)mark >> 16;
}

static __always_inline __u32 mark_groups(__u64 mark)
{
	return mark >> 32;
}

#endif
