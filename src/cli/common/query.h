/* SPDX-License-Identifier: MIT */
/* Asking the monitor: what `flexguard status`, `top` and `metrics` have in common. */
#ifndef FG_CLI_QUERY_H
#define FG_CLI_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "abi/protocol.h"
#include "cli/common/arguments.h"
#include "cli/common/json.h"

struct fg_answer {
	struct fg_report sum; /* the summary; its processes are below */
	struct fg_report_process *process;
	size_t count;
	pid_t pid; /* of the process that has answered; 0: it cannot be seen from here */
	/* its numbers of processes are ours: it is neither outside of this container nor in one */
	bool same_numbers;
};

/* 0, or -errno and one sentence in `why`. */
int fg_query(const char *socket, struct fg_answer *a, char *why, size_t size);
/* Whether who listens there refuses this version's programs; then one sentence in `why`. */
bool fg_monitor_is_another_version(const char *socket, char *why, size_t size);
void fg_answer_free(struct fg_answer *a);

/* --socket was read: false if its value is missing (said). */
bool fg_socket_option(const struct fg_arguments *a, const char **path);

/*
 * By how much the CLOCK_MONOTONIC of that process is ahead of this one's, which may be in different
 * time namespaces; 0: of one that cannot be seen from here, as if in the machine's first one.
 */
int64_t fg_clock_ahead_ns(pid_t pid);

/* The program's name as the kernel has it, "?" if this process may not know. */
void fg_program_name(int pid, char *name, size_t size);
/* Of a process in an answer; "?" where its number is not one of this pid namespace. */
void fg_client_name(const struct fg_answer *a, const struct fg_report_process *p, char *name,
		    size_t size);
/* The user's name, or the number. */
void fg_user_name(uint32_t uid, char *name, size_t size);

/* Of enum fg_slot_stat: as in --json; BLOCKED_NS is in nanoseconds. */
extern const char *const fg_slot_stat_name[FG_SLOT_STATS];
/* A sum over processes, each of which may say any number of itself: it does not wrap. */
static inline void fg_add_count(__u64 *sum, __u64 more)
{
	*sum = *sum + more >= more ? *sum + more : UINT64_MAX;
}
/* "stats": {"name": value, ...} */
void fg_json_slot_stats(struct fg_json *j, const __u64 stats[FG_SLOT_STATS]);

#endif
