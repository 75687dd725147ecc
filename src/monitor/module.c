// SPDX-License-Identifier: MIT
#include "monitor/module.h"

__attribute__((visibility("default"))) const struct fg_monitor_module fg_monitor_module = {
    .version = FG_VERSION,
    .open = fg_monitor_open,
    .serve = fg_monitor_serve,
    .counters = fg_monitor_counters,
    .close = fg_monitor_close,
};
