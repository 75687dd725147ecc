/* SPDX-License-Identifier: MIT */
#ifndef FG_CPUS_H
#define FG_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * CPUs that threads of this process may use, as of a second ago at most: by the affinity of who
 * asked then and, where that was one CPU, by those of some others as well.
 */
uint32_t fg_cpus(void);

/* At the start of the process: what its control group may use (sys/quota.h), which opens files. */
void fg_cpus_setup(void);

/* So many CPUs' time it may use: fg_cpus(), or its quota, if that is less. */
uint32_t fg_cpus_allotted(void);

/*
 * Is CPU time rationed: has the process a quota, and used it up lately?  Then time that is spent
 * spinning is taken from those who work, and all stand still when it is gone.
 */
bool fg_is_rationed(void);

#endif
