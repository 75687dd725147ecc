/* SPDX-License-Identifier: MIT */
/*
 * The preemption monitor as `flexguard run`, `flexguard doctor` and `flexguard
 * monitor` use it.  The only code in the project that knows libbpf.
 */
#ifndef FG_MONITOR_H
#define FG_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/protocol.h"

struct fg_monitor;

/*
 * Which processes share counters.  With both, a waiter hears only of threads that could use its
 * CPU.
 */
enum fg_domains {
	FG_DOMAINS_UID,	   /* processes of one user */
	FG_DOMAINS_CPUSET, /* all: nothing but the CPUs divides them */
};

/* Modes of the BPF Hybrid Lock's monitor (2023), to measure against. */
enum fg_holder_test {
	FG_HOLDER_SLOT, /* struct fg_slot */
	FG_HOLDER_MCS,	/* for threads in the queue of an MCS lock: struct fg_mcs_node */
};
enum fg_kernel_threads {
	/* a thread that makes room for one is preempted only if another program comes after it */
	FG_KTHREADS_DEFER,
	FG_KTHREADS_COUNT,
};

/* 0 in any of them: the default, internal.h. */
struct fg_monitor_config {
	uint32_t max_processes;
	uint32_t max_slots;   /* granted to one process at most */
	uint32_t max_per_uid; /* processes of one user; default: max_processes */
	uint32_t max_slots_per_uid;
	/* for its processes, the kernel's and the monitor's, in bytes */
	uint64_t max_memory_per_uid;
	/* for those of all; default: less than the monitor's cgroup may have */
	uint64_t max_memory;
	uint32_t max_connections_per_uid; /* that have not said hello yet */
	char secret[FG_SECRET + 1];	  /* what a hello has to have behind it; "": nothing */
	enum fg_domains domains;
	bool domains_only; /* as fg_counters.domains_only */
	enum fg_holder_test holder_test;
	enum fg_kernel_threads kernel_threads;
	/* NULL: nobody hears; what changes while it serves and people should know */
	void (*note)(const char *sentence);
	bool early_storage; /* as on a kernel before 6.4 (bpf/compat.h); for tests */
};

/*
 * RLIMIT_NOFILE for each process of one user, who may have half of all processes, and these half of
 * the descriptors: two each.  With fewer than that for max_per_uid some of them are refused.
 */
#define FG_FILES_EACH 8

/* What can be seen without trying: 0, or as fg_monitor_open(). */
int fg_monitor_preflight(char *why, size_t why_size);

/*
 * Load the eBPF program and attach it.  Returns 0, or -errno with one sentence
 * in `why` that says what is missing and what to do (-ENOSYS: built without
 * eBPF; -EPERM: capabilities; -ENOTSUP: kernel too old or without BTF).
 */
int fg_monitor_open(struct fg_monitor **out, const struct fg_monitor_config *cfg, char *why,
		    size_t why_size);

/*
 * Answer clients on the listening SEQPACKET socket until `stop_fd` becomes readable or hangs up
 * (-1: for ever).  `lock_fd` is what fg_monitor_lock() returned, or FG_NO_LOCK.  Returns 0 or
 * -errno.
 */
int fg_monitor_serve(struct fg_monitor *m, int listen_fd, int lock_fd, int stop_fd);

/* Read-only view of the counters, valid until close. */
const struct fg_counters *fg_monitor_counters(const struct fg_monitor *m);

/* Detach and free all. */
void fg_monitor_close(struct fg_monitor *m);

/*
 * Connections that the kernel holds until they are accepted, of all users in one queue: a new one
 * waits for all that are in it.  Where it is full, those that wait in connect() are let in in the
 * order of coming.  Not varied.
 */
#define FG_BACKLOG 256

/*
 * Make a listening socket at `path` ('@' first: abstract), with these permissions.  Returns the
 * descriptor (CLOEXEC) or -errno; -EADDRINUSE if somebody listens there.  A path that nobody
 * listens on any more is replaced, after the time for which another may have bound it and not
 * listen yet; FG_STALE if it cannot be removed.  Before there are threads that make files: it
 * changes the umask, which is the process's, for a moment.
 */
int fg_monitor_listen(const char *path, unsigned mode);
#define FG_STALE (-1001)

/*
 * Give the socket that this process has made at `path` to a user and a group.  Returns 0 or -errno;
 * -EPERM, and nothing is given away, if another file has been put there, or the socket has another
 * name besides: who may write to the folder could have put any file there by a hard link.
 */
int fg_monitor_give_away(const char *path, uid_t uid, gid_t gid);

/*
 * Be the only one at this path: between two that start, the test above may be a race, and it says
 * nothing of one whose path somebody has removed.  Returns a descriptor that holds the lock while
 * it is open, FG_NO_LOCK where none is needed (abstract names) or another user has taken the lock's
 * name, or -errno: -EADDRINUSE.  The holder has to take connections from it, or anybody fills its
 * queue, and the next monitor cannot tell whose it is.
 */
int fg_monitor_lock(const char *path);
#define FG_NO_LOCK (-1000)

#endif
