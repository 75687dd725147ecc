/* SPDX-License-Identifier: MIT */
#ifndef FG_TOPOLOGY_H
#define FG_TOPOLOGY_H

#include <stdint.h>

/*
 * Where CPUs 0..n-1 are (enum fg_near), by what the kernel says below `root`, which is
 * /sys/devices/system.  0 for those that it does not tell of.
 */
void fg_topology_read(const char *root, uint8_t *near, int n);

#endif
