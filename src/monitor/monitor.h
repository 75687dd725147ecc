/* SPDX-License-Identifier: MIT */
/*
 * The preemption monitor as `flexguard run`, `flexguard doctor` and later the
 * daemon use it.  The only code in the project that knows libbpf.
 */
#ifndef FG_MONITOR_H
#define FG_MONITOR_H

#include <stddef.h>
#include <stdint.h>

struct fg_monitor;

struct fg_monitor_config {
	uint32_t max_processes; /* 0: default */
	uint32_t max_slots;	/* slots granted to one process at most; 0: default */
	uint32_t max_per_uid;	/* processes of one user; 0: max_processes */
};

/*
 * Load the eBPF program and attach it.  Returns 0, or -errno with one sentence
 * in `why` that says what is missing and what to do (-ENOSYS: built without
 * eBPF; -EPERM: capabilities; -ENOTSUP: kernel too old or without BTF).
 */
int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why, size_t why_size);

/*
 * Answer clients on the listening SEQPACKET socket until `stop_fd` becomes
 * readable or hangs up (-1: for ever).  Returns 0 or -errno.
 */
int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int stop_fd);

/* Read-only view of the counters, valid until close. */
const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m);

/* Detach and free all. */
void fg_monitor_close(struct fg_monitor *m);

/*
 * Make a listening socket at `path` ('@' first: abstract), any uid may connect.
 * Returns the descriptor (CLOEXEC) or -errno.
 */
int fg_monitor_listen(const char *path);

#endif
