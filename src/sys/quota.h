/* SPDX-License-Identifier: MIT */
/*
 * The CPU quota of this process's cgroup, and of those above it: cgroups(7), "cpu.max" in the
 * kernel's admin-guide/cgroup-v2.rst, "cpu.cfs_quota_us" of version 1 in
 * scheduler/sched-bwc.rst.
 */
#ifndef FG_QUOTA_H
#define FG_QUOTA_H

#include <stdint.h>

#define FG_QUOTA_NONE UINT32_MAX
#define FG_QUOTA_CPU  1000u /* one CPU's time, in the quotas below */

/*
 * In thousandths of a CPU's time, 1 at least, the lowest of all that limit it; FG_QUOTA_NONE: none,
 * or it cannot be read.  Opens files: at the start of the process.
 */
uint32_t fg_quota(void);

/* The same of another list of cgroups and another mount point. */
uint32_t fg_quota_read(const char *list, const char *mounted);

/* Whole CPUs, 1 at least; or FG_QUOTA_NONE. */
static inline uint32_t fg_quota_cpus(uint32_t quota)
{
	if (quota == FG_QUOTA_NONE)
		return FG_QUOTA_NONE;
	return quota < FG_QUOTA_CPU ? 1 : quota / FG_QUOTA_CPU;
}

#endif
