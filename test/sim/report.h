/* SPDX-License-Identifier: MIT */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include "runtime/count.h"
#include "sim.h"

extern struct figures {
	uint64_t started; /* when all threads had an identity */
	bool show_runnable;
	struct fg_stats *counts; /* of looks; NULL: not asked for */
} figures;

void report(const char *lock, int n, uint64_t ps, double host_s);
/* The places in the code that most lines were moved for. */
void report_sites(uint64_t sections);
/* Where each thread is, at the end. */
void report_places(int n);

#endif
