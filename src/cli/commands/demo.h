/* SPDX-License-Identifier: MIT */
/*
 * `flexguard demo`: a cell is one workload with one number of threads; it is
 * measured in pairs, one run on glibc's locks and one on FlexGuard's right
 * after each other in random order, and the rounds go over all cells, so that
 * slow changes of the machine meet both sides alike.
 */
#ifndef FG_CLI_DEMO_H
#define FG_CLI_DEMO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fg_side { FG_SIDE_GLIBC, FG_SIDE_FLEXGUARD, FG_SIDES };
enum fg_workload { FG_FILLRANDOM, FG_READRANDOM, FG_THREADS, FG_WORKLOADS };

#define FG_DEMO_PAIRS 9	 /* at most, of a cell; not varied */
#define FG_DEMO_CELLS 12 /* three workloads, four numbers of threads */

struct fg_cell {
	enum fg_workload workload;
	int threads;
	int pairs;
	double rate[FG_SIDES][FG_DEMO_PAIRS]; /* operations a second */
	int failed[FG_SIDES];
};

struct fg_demo {
	char self[512]; /* this command, for `flexguard run` */
	char dir[128];	/* databases; removed at the end */
	int seconds;	/* of one run, as db_bench and sysbench are told */
	int nr_cells;
	struct fg_cell cell[FG_DEMO_CELLS];
	/* context */
	char monitor[160]; /* "yes", or why not */
	uint64_t steal_start_ns, started_ns;
	double load_start;
	char date[40];
	int rounds;
	int interrupted; /* the signal; 0: none has come */
};

/* ---- demo_runs.c ---- */
extern const char *const fg_workload_name[FG_WORKLOADS];
/*
 * Run a program in a process group of its own; its stdout and stderr go to
 * `out`, the end of them where they are longer.  Returns the exit status,
 * -EINTR, -ETIMEDOUT or another -errno.
 */
int fg_capture(const char *const *argv, uint64_t timeout_ns, char *out, size_t size);
/* Make the database that readrandom reads, warm up, find out about the monitor. */
int fg_demo_prepare(struct fg_demo *d, char *why, size_t why_size);
/* One run; 0 with its rate, or -errno. */
int fg_demo_run(const struct fg_demo *d, const struct fg_cell *c, enum fg_side side, double *rate,
		char *why, size_t why_size);

/* ---- demo_report.c ---- */
uint64_t fg_steal_ns(void);
double fg_load_average(void);
void fg_demo_table(const struct fg_demo *d);
void fg_demo_json(FILE *f, const struct fg_demo *d);

#endif
