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

/*
 * Whole CPUs, the lowest of all that limit it; FG_QUOTA_NONE: none, or it cannot be read.  Opens
 * files: at the start of the process.
 */
uint32_t fg_quota_cpus(void);

/* The same of another list of cgroups and another mount point. */
uint32_t fg_quota_read(const char *list, const char *mounted);

#endif
