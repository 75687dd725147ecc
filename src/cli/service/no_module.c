/* SPDX-License-Identifier: MIT */
/*
 * Of a build without eBPF (src/monitor/stub.c), in the place of module.c: there is nothing to load.
 */
#include "cli/service/service.h"

void fg_monitor_find(void)
{
}
