/* SPDX-License-Identifier: MIT */
/*
 * `flexguard top`: what it shows (top_rows.c, top_kernel.c), as lines (top_lines.c), in batch mode
 * (top.c) and on the whole screen (top_screen.c).
 */
#ifndef FG_CLI_TOP_H
#define FG_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/common/query.h"

/* One process, rates between two answers of the monitor. */
struct fg_top_row {
	int pid;
	char user[32], program[32];
	uint32_t threads, runnable;
	double contended, spun, parks, preemptions; /* a second */
	double blocked;				    /* threads in blocking mode, on average */
	double kernel; /* threads that wait for a lock of the kernel, on average */
};

enum fg_top_key {
	FG_TOP_CONTENDED,
	FG_TOP_PARKS,
	FG_TOP_PREEMPTIONS,
	FG_TOP_BLOCKED,
	FG_TOP_THREADS,
	FG_TOP_PID
};
extern const char *const fg_top_key_name[];

/* Between two samples, at least: what -d takes, and a key comes down to.  Not varied. */
#define FG_TOP_DELAY_MIN_NS 10000000u

struct fg_top {
	const char *socket;
	uint64_t delay_ns;
	enum fg_top_key key;
	bool reverse;
	struct fg_top_kernel *kernel; /* NULL: not looked at */

	struct fg_answer last; /* the rates are those since this one */
	struct fg_top_row *row;
	size_t rows;
	uint64_t between_ns; /* the two */
	__u64 monitored;     /* processes of all users */
	__u64 hidden;	     /* of these, of users about which the monitor says nothing */
	double preempted;    /* all threads of the machine, a second */
	double cost_ns;	     /* a context switch, 0: not known yet */
	char version[32];
};

/* Asks, and makes rows of the difference to the last answer.  0, or -errno and `why`. */
int fg_top_sample(struct fg_top *t, char *why, size_t size);
void fg_top_sort(struct fg_top *t);

/* One of the kernel's locks, since the last sample. */
struct fg_top_lock {
	const char *type;
	double waits, waiting, average_ns; /* a second; threads on average; of a wait */
	char name[128];
};

/* 0, or as fg_contention_open() (monitor/contention.h). */
int fg_top_kernel_open(struct fg_top_kernel **out, char *why, size_t size);
void fg_top_kernel_close(struct fg_top_kernel *k);
int fg_top_kernel_sample(struct fg_top_kernel *k, char *why, size_t size);
double fg_top_kernel_waiting(const struct fg_top_kernel *k, int pid); /* threads of this process */
/* Their number; those that most threads waited for are first. */
size_t fg_top_kernel_locks(const struct fg_top_kernel *k, const struct fg_top_lock **lock);
void fg_top_kernel_summary(const struct fg_top_kernel *k, char *text, size_t size);
void fg_top_kernel_header(char *text, size_t size);
void fg_top_kernel_line(const struct fg_top_lock *l, char *text, size_t size);
void fg_top_kernel_json(const struct fg_top_kernel *k, struct fg_json *j);

/* The lines of a table, as in batch mode. */
#define FG_TOP_SUMMARY_LINES 2
void fg_top_summary(const struct fg_top *t, int line, char *text, size_t size);
void fg_top_header(const struct fg_top *t, char *text, size_t size);
void fg_top_hidden(const struct fg_top *t, char *text, size_t size); /* "" if nothing is */
void fg_top_line(const struct fg_top *t, const struct fg_top_row *r, char *text, size_t size);

/* Until q, or for so many tables: 0, or -errno and `why`.  -ENOSYS: built without ncurses. */
int fg_top_screen(struct fg_top *t, uint64_t iterations, char *why, size_t size);

#endif
