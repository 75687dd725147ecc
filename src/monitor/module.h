/* SPDX-License-Identifier: MIT */
/*
 * The monitor as a module of its own (libflexguard-monitor.so), which alone is linked with libbpf:
 * the command loads it when it has to (src/cli/service/module.c), so that all that needs no monitor
 * runs without libbpf, and starts sooner.  The functions are those of monitor.h and contention.h.
 */
#ifndef FG_MONITOR_MODULE_H
#define FG_MONITOR_MODULE_H

#include "monitor/contention.h"
#include "monitor/monitor.h"
#include "monitor/scheduler.h"
#include "monitor/syncord.h"

#define FG_MODULE_NAME	 "libflexguard-monitor.so"
#define FG_MODULE_SYMBOL "fg_monitor_module"

struct fg_monitor_module {
	const char *version; /* of the command that it belongs to */
	int (*open)(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why,
		    size_t why_size);
	int (*serve)(struct fg_monitor *m, int listen_fd, int lock_fd, int stop_fd);
	const struct fg_counters *(*counters)(const struct fg_monitor *m);
	void (*close)(struct fg_monitor *m);
	/* contention.h */
	int (*contention_open)(struct fg_contention **out, const struct fg_contention_config *cfg,
			       char *why, size_t size);
	const struct fg_contention_view *(*contention_view)(const struct fg_contention *c);
	bool (*contention_slab)(struct fg_contention *c, uint64_t address, char *name, size_t size);
	bool (*contention_percpu)(struct fg_contention *c, uint64_t address, char *name,
				  size_t size);
	void (*contention_stop)(struct fg_contention *c);
	uint64_t (*contention_missed)(const struct fg_contention *c);
	void (*contention_close)(struct fg_contention *c);
	const struct fg_policy_calls *policies; /* syncord.h */
	const struct fg_sched_calls *sched;
};

extern const struct fg_monitor_module fg_monitor_module;

#endif
