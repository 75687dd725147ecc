/* SPDX-License-Identifier: MIT */
#ifndef SIM_LOCKS_H
#define SIM_LOCKS_H
#include "sim.h"
#define MAX_LOCKS 128
struct zoo_lock;
extern struct load {
	const struct zoo_lock *zoo;
	int locks, rounds, threads;
	uint64_t cs, think;
} load;
extern struct results {
	volatile int started;
	uint64_t violations, wait_hist[256];
} results;
bool load_lock(const char *name);
void load_reset(void);
void load_mapped(void *at, uint64_t size);
void load_body(struct thread *t);
void check_body(struct thread *t);
uint64_t load_stat(int what);
#endif
