/* SPDX-License-Identifier: MIT */
/*
 * The companion scheduler (bpf/sched.bpf.c): loaded, given the monitor's maps, attached.  It lasts
 * as long as the process: the kernel goes back to its own when the link is closed, whichever way.
 */
#ifndef FG_MONITOR_SCHEDULER_H
#define FG_MONITOR_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/scheduler.h"

struct fg_sched;

struct fg_sched_config {
	pid_t monitor;	       /* whose maps know the owners; 0: virtual time alone */
	uint64_t extension_ns; /* 0: an owner's turn is not extended */
};

/* What can be seen without trying, needing no libbpf: 0, or as open(); of the kernel, of all. */
int fg_sched_kernel(char *why, size_t size);
int fg_sched_preflight(char *why, size_t size);

struct fg_sched_calls {
	/*
	 * 0, or -errno with one sentence in `why`: -ENOTSUP the kernel lacks it, -ENOSYS this build
	 * does, -EPERM no privilege, -EBUSY another scheduler is there, -ESRCH the process has no
	 * monitor's maps, others.
	 */
	int (*open)(struct fg_sched **out, const struct fg_sched_config *cfg, char *why,
		    size_t size);
	void (*counts)(const struct fg_sched *s, struct fg_sched_counts *counts);
	/* Whether the kernel has ended it, and why. */
	bool (*ended)(const struct fg_sched *s, struct fg_sched_end *end);
	void (*close)(struct fg_sched *s);
};

/* NULL and one sentence: there is no module, or it was built without eBPF. */
const struct fg_sched_calls *fg_sched_calls(char *why, size_t size);

extern const struct fg_sched_calls fg_sched_module_calls;

#endif
