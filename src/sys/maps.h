/* SPDX-License-Identifier: MIT */
/* What kind of memory an address lies in: proc(5), /proc/self/maps. */
#ifndef FG_MAPS_H
#define FG_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if it lies in a mapping that other processes may have as well (MAP_SHARED,
 * shmat).  Slow; no malloc, no stdio, errno stays.  False where there is no /proc.
 */
bool fg_is_shared_memory(uint64_t address);

#endif
