/* SPDX-License-Identifier: MIT */
#ifndef FG_CPUS_H
#define FG_CPUS_H

#include <stdint.h>

/* CPUs that this process may use, as of a second ago at most. */
uint32_t fg_cpus(void);

#endif
