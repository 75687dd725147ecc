/* SPDX-License-Identifier: MIT */
/*
 * What a user can type: commands, their options, what is said of them.  The reader of options, each
 * --help, the completions of three shells and the manual pages' synopses are made from this one
 * table (cli/describe.c), so it is data only and needs nothing of the rest.
 */
#ifndef FG_CLI_TABLE_H
#define FG_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* What a shell offers for a value, besides the choices in "a|b". */
enum fg_complete {
	FG_OFFER_NOTHING,
	FG_OFFER_FILES,
	FG_OFFER_USERS,
	FG_OFFER_PROGRAMS,
	FG_OFFER_PIDS,
	FG_OFFER_LOCKS,
	FG_OFFER_FIGURES,
	FG_OFFER_POLICIES, /* of kernel locks, and files */
};

struct fg_option {
	const char *name;  /* --name; NULL ends the table */
	const char *value; /* "PATH", or "a|b": one of these; NULL: it has none */
	const char *help;
	const char *list; /* lines below `help`, as they are */
	enum fg_complete offer;
	char letter;   /* -l; 0: none */
	bool optional; /* --name[=VALUE] */
	bool repeated;
};

struct fg_command {
	const char *name, *brief;
	const struct fg_option *options; /* --help is every command's, and not listed */
	const char *operands;		 /* "[--] program [args...]"; NULL: none */
	const char *verbs;		 /* the first operand is one of "a|b" */
	const char *about, *after;	 /* paragraphs in front of the options, and behind */
	enum fg_complete offer;		 /* for operands; behind the verb, if it has them */
	/* options end at the first operand: the rest is a program's */
	bool stops;
};

extern const struct fg_command fg_commands[]; /* the one without a name ends it */

/* Indices into the options, in the order of the table. */
enum { FG_RUN_LOCK, FG_RUN_POLICY, FG_RUN_FUTEX, FG_RUN_MONITOR, FG_RUN_STATS };
enum { FG_DOCTOR_JSON };
enum { FG_DEMO_QUICK, FG_DEMO_JSON };
enum { FG_LOCKS_JSON };
enum {
	FG_MONITOR_SOCKET,
	FG_MONITOR_MODE,
	FG_MONITOR_USER,
	FG_MONITOR_DOMAINS,
	FG_MONITOR_HOLDER_TEST,
	FG_MONITOR_KERNEL_THREADS,
	FG_MONITOR_MAX_PROCESSES,
	FG_MONITOR_MAX_PROCESSES_PER_UID,
	FG_MONITOR_MAX_SLOTS,
	FG_MONITOR_MAX_SLOTS_PER_UID,
	FG_MONITOR_MAX_MEMORY_PER_UID,
	FG_MONITOR_MAX_MEMORY,
	FG_MONITOR_MAX_CONNECTIONS_PER_UID,
};
enum { FG_STATUS_SOCKET, FG_STATUS_JSON };
enum {
	FG_TOP_BATCH,
	FG_TOP_ITERATIONS,
	FG_TOP_DELAY,
	FG_TOP_SORT,
	FG_TOP_KERNEL,
	FG_TOP_JSON,
	FG_TOP_SOCKET,
};
enum {
	FG_STAT_PID,
	FG_STAT_DURATION,
	FG_STAT_BY,
	FG_STAT_ROWS,
	FG_STAT_JSON,
	FG_STAT_THREAD,
	FG_STAT_LIBRARY,
	FG_STAT_FOLDED,
	FG_STAT_SVG
};
enum {
	FG_KERNEL_BY,
	FG_KERNEL_DURATION,
	FG_KERNEL_SORT,
	FG_KERNEL_TYPE,
	FG_KERNEL_LOCK,
	FG_KERNEL_PID,
	FG_KERNEL_HOLDS,
	FG_KERNEL_ROWS,
	FG_KERNEL_OPTION,
	FG_KERNEL_FOR,
	FG_KERNEL_PIN,
	FG_KERNEL_KEEP,
	FG_KERNEL_ALL,
	FG_KERNEL_JSON,
};
enum { FG_SCHED_FOR, FG_SCHED_EXTENSION, FG_SCHED_PLAIN, FG_SCHED_SOCKET, FG_SCHED_JSON };
enum { FG_METRICS_LISTEN, FG_METRICS_BY, FG_METRICS_SOCKET };

#endif
