/* SPDX-License-Identifier: MIT */
/*
 * Waits for the kernel's own locks, counted by bpf/contention.bpf.c while this is open: `flexguard
 * kernel profile`.
 */
#ifndef FG_MONITOR_CONTENTION_H
#define FG_MONITOR_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/contention.h"

struct fg_contention;

struct fg_contention_config {
	enum fg_contention_by by;
	uint32_t tgid; /* 0: every process */
	/*
	 * Look at every release of a lock that sleeps, each of which then takes longer: holds on
	 * kernels that do not tell of contended releases, and on others also of those that nobody
	 * waits for any more.
	 */
	bool holds;
};

/* The tables as the kernel fills them, read-only, until close. */
struct fg_contention_view {
	const struct fg_contended_lock *locks;	   /* FG_LOCK_ROWS */
	const struct fg_contended_waiter *waiters; /* FG_WAITER_ROWS */
	/* FG_WAITING_ROWS; spinning ones are not among them */
	const struct fg_waiting *waiting;
	const struct fg_contention_counts *counts;
	bool holds; /* the kernel tells when a contended lock is let go, or they were asked for */
	bool slabs; /* it tells slab caches */
};

/* What can be seen without trying, needing no libbpf: 0, or as fg_contention_open(). */
int fg_contention_preflight(char *why, size_t size);
/*
 * Loads and attaches.  0, or -errno with one sentence in `why`: -ENOTSUP the kernel lacks it,
 * -ENOSYS this build does, -EPERM no privilege, others.
 */
int fg_contention_open(struct fg_contention **out, const struct fg_contention_config *cfg,
		       char *why, size_t size);
const struct fg_contention_view *fg_contention_view(const struct fg_contention *c);
/* The slab cache that this address lies in; false: in none, or not told. */
bool fg_contention_slab(struct fg_contention *c, uint64_t address, char *name, size_t size);
/*
 * The per-CPU variable that this address lies in, as "runqueues.__lock@cpu3"; false: in none, or
 * not told.
 */
bool fg_contention_percpu(struct fg_contention *c, uint64_t address, char *name, size_t size);
/* Detaches: the tables stay as they are. */
void fg_contention_stop(struct fg_contention *c);
/* Events that the kernel did not run the program for, since it ran already on that CPU. */
uint64_t fg_contention_missed(const struct fg_contention *c);
void fg_contention_close(struct fg_contention *c);

#endif
