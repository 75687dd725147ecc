/* SPDX-License-Identifier: MIT */
/* `flexguard metrics`: what its files share. */
#ifndef FG_CLI_METRICS_H
#define FG_CLI_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/common/query.h"

/* What a program counts about its locks, as a metric. */
struct fg_lock_metric {
	const char *name, *help;
	enum fg_slot_stat stat;
	double unit; /* of the metric in the count */
};
#define FG_LOCK_METRICS 7
extern const struct fg_lock_metric fg_lock_metric[FG_LOCK_METRICS];

/* By what programs are told apart: bits. */
enum { FG_GROUP_UID = 1, FG_GROUP_PROGRAM = 2 };

/* "uid", "program", or both with a comma; 0: neither. */
int fg_groups_by(const char *text);

/*
 * The registered programs of the answer, summed by `by`; counts go on from those of earlier calls.
 * Not for two threads at a time.  Sorts the answer's processes.
 */
void fg_groups_print(FILE *f, struct fg_answer *a, int by);

#endif
