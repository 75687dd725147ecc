/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H
#include "sim.h"

struct check {
	uint64_t schedules, seed;
	int threads;	 /* two to so many */
	bool exact;	 /* so many */
	int changes;	 /* change points of a schedule by priorities; -1: by times */
	uint64_t length; /* steps of a schedule, about */
	/* Of a wait, ps: before any periodic check could have found what no release told. */
	uint64_t bound;
	double search_s;     /* how long to look for a smaller one that fails as well */
	bool relax;	     /* do it for each place with a memory order, which is not there */
	const char *relaxed; /* only in these functions, with commas between; NULL: in all */
	char **argv;
};

/* 0, or 1 if one of them has failed. */
int check_run(struct check *c, const char *lock);

#endif
