// SPDX-License-Identifier: MIT
/* The monitor of a build without eBPF: it says so, and nothing can be opened. */
#include <errno.h>
#include <stdio.h>
#include "monitor/contention.h"
#include "monitor/monitor.h"
#include "monitor/scheduler.h"
#include "monitor/syncord.h"

int fg_monitor_preflight(char *why, size_t why_size)
{
	if (why_size)
		snprintf(why, why_size,
			 "this flexguard was built without eBPF (it needs clang >= 16, bpftool and "
			 "libbpf >= 1.0)");
	return -ENOSYS;
}

int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why,
		    size_t why_size)
{
	*out = NULL;
	return fg_monitor_preflight(why, why_size);
}

int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int lock_fd, int stop_fd)
{
	return -ENOSYS;
}

const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m)
{
	return NULL;
}

int fg_contention_open(struct fg_contention **out, const struct fg_contention_config *cfg,
		       char *why, size_t size)
{
	*out = NULL;
	return fg_monitor_preflight(why, size);
}

const struct fg_contention_view *fg_contention_view(const struct fg_contention *c)
{
	return NULL;
}

bool fg_contention_slab(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	return false;
}

bool fg_contention_percpu(struct fg_contention *c, uint64_t address, char *name, size_t size)
{
	return false;
}

void fg_contention_stop(struct fg_contention *c)
{
}

uint64_t fg_contention_missed(const struct fg_contention *c)
{
	return 0;
}

void fg_contention_close(struct fg_contention *c)
{
}

void fg_monitor_close(struct fg_monitor *m)
{
}

const struct fg_sched_calls *fg_sched_calls(char *why, size_t size)
{
	fg_monitor_preflight(why, size);
	return NULL;
}

const struct fg_policy_calls *fg_policy_calls(char *why, size_t size)
{
	fg_monitor_preflight(why, size);
	return NULL;
}
