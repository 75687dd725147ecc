// SPDX-License-Identifier: MIT
#include "monitor/module.h"
#include "monitor/syncord_counters.h"

__attribute__((visibility("default"))) const struct fg_monitor_module fg_monitor_module = {
    .version = FG_VERSION,
    .open = fg_monitor_open,
    .serve = fg_monitor_serve,
    .counters = fg_monitor_counters,
    .close = fg_monitor_close,
    .contention_open = fg_contention_open,
    .contention_view = fg_contention_view,
    .contention_slab = fg_contention_slab,
    .contention_percpu = fg_contention_percpu,
    .contention_stop = fg_contention_stop,
    .contention_missed = fg_contention_missed,
    .contention_close = fg_contention_close,
    .policies = &fg_policy_module_calls,
    .sched = &fg_sched_module_calls,
};
