/* SPDX-License-Identifier: MIT */
#ifndef FG_CPUS_H
#define FG_CPUS_H

#include <stdint.h>

/*
 * CPUs that threads of this process may use, as of a second ago at most: by the affinity of who
 * asked then and, where that was one CPU, by those of some others as well.
 */
uint32_t fg_cpus(void);

#endif
