/* SPDX-License-Identifier: MIT */
/* What the files of `flexguard kernel` share. */
#ifndef FG_CLI_KERNEL_H
#define FG_CLI_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/contention.h"

/* How rows are told apart; the first ones as --by names them. */
enum fg_kernel_by {
	FG_KBY_LOCK,
	FG_KBY_TYPE,
	FG_KBY_SLAB,
	FG_KBY_CALLER,
	FG_KBY_TASK,
	FG_KBY_CGROUP,
	FG_KBY_OWNER
};
enum fg_kernel_sort {
	FG_KSORT_TOTAL,
	FG_KSORT_WAITS,
	FG_KSORT_MAX,
	FG_KSORT_AVERAGE,
	FG_KSORT_ACROSS
};

struct fg_kernel_options {
	enum fg_kernel_by by;
	enum fg_kernel_sort sort;
	int class;	  /* -1: all */
	const char *lock; /* pattern of its name; NULL: all */
	unsigned pid;	  /* 0: all */
	bool holds;
	uint64_t for_ns; /* 0: until a signal */
	uint64_t rows;	 /* 0: all */
	bool json;
};

static inline uint64_t fg_waits_count(const struct fg_waits *w)
{
	return w->waits + w->failed;
}

extern const char *const fg_lock_class_name[FG_CLASSES];
extern const char *const fg_kernel_by_name[]; /* ends in NULL, as the next */
extern const char *const fg_kernel_sort_name[];

int fg_kernel_profile(const struct fg_kernel_options *o);
int fg_kernel_doctor(bool json);

/* ---- kernel_symbols.c: /proc/kallsyms ---- */
struct fg_kernel_symbols;
/* NULL: out of memory, or the kernel does not show addresses to this process. */
struct fg_kernel_symbols *fg_kernel_symbols_open(void);
void fg_kernel_symbols_close(struct fg_kernel_symbols *s);
/* Whether variables have names, too (CONFIG_KALLSYMS_ALL). */
bool fg_kernel_has_variables(const struct fg_kernel_symbols *s);
/* The variable that this lies in, as "name" or "name+0x10"; false: none. */
bool fg_kernel_variable(const struct fg_kernel_symbols *s, uint64_t address, char *name,
			size_t size);
/* The variable of this name: how many there are, and the address of the last. */
size_t fg_kernel_address(const struct fg_kernel_symbols *s, const char *name, uint64_t *address);
/* The function that this lies in, or the address. */
void fg_kernel_function(const struct fg_kernel_symbols *s, uint64_t address, char *name,
			size_t size);
/*
 * The first frame that is no part of a lock, of the scheduler or of the tracepoint; 0: all are, or
 * there is none.
 */
uint64_t fg_kernel_caller(const struct fg_kernel_symbols *s, const __u64 *stack);

/* ---- kernel_names.c: what locks are called ---- */
struct fg_contention;
struct fg_contention_view;
struct fg_kernel_names {
	struct fg_kernel_symbols *symbols; /* NULL: none are shown to this process */
	/* Of each row of the locks. */
	bool seen[FG_LOCK_ROWS];
	char slab[FG_LOCK_ROWS][32], percpu[FG_LOCK_ROWS][64]; /* "": in none */
};
struct fg_kernel_names *fg_kernel_names_open(void); /* NULL: out of memory */
void fg_kernel_names_close(struct fg_kernel_names *n);
/* To be called now and then: an object that is freed in between leaves a lock without its slab. */
void fg_kernel_names_learn(struct fg_kernel_names *n, struct fg_contention *c);
/* The variable that the lock of this row lies in; false: none, and the name is "". */
bool fg_kernel_variable_at(const struct fg_kernel_names *n, const struct fg_contention_view *v,
			   size_t row, char *name, size_t size);
void fg_kernel_name_lock(const struct fg_kernel_names *n, const struct fg_contention_view *v,
			 size_t row, char *name, size_t size);

/* ---- kernel_rows.c: what was counted, as it is asked for ---- */
#define FG_KERNEL_NAME 128
struct fg_kernel_row {
	char name[FG_KERNEL_NAME];
	char group[FG_KERNEL_NAME]; /* rows of one group become one */
	struct fg_waits w;
	int class;			      /* -1: several */
	uint64_t waiters;		      /* of one lock: threads that waited */
	double fair;			      /* Jain's index of their waits */
	const struct fg_contended_lock *lock; /* of FG_KBY_LOCK, else NULL */
	/* the one of the row that waited most, else NULL */
	const struct fg_contended_waiter *waiter;
	char slab[32], symbol[FG_KERNEL_NAME]; /* of FG_KBY_LOCK; "": none */
	uint64_t handovers, across, batch, holds, hold_ns, hold_max_ns;
};

/* Sorted as it is asked for; NULL: out of memory. */
struct fg_kernel_row *fg_kernel_rows(const struct fg_contention_view *v,
				     const struct fg_kernel_options *o,
				     const struct fg_kernel_names *names, size_t *count);

#endif
