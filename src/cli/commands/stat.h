/* SPDX-License-Identifier: MIT */
/* The parts of `flexguard stat` (stat.c): what is asked, how it is watched, symbols, stacks. */
#ifndef FG_CLI_STAT_H
#define FG_CLI_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "abi/trace.h"

enum fg_stat_by { FG_STAT_BY_CALLER, FG_STAT_BY_LOCK, FG_STAT_BY_STACK };

struct fg_stat_options {
	pid_t pid;
	uint64_t for_ns; /* 0: no limit */
	enum fg_stat_by by;
	bool json, folded;
	uint64_t rows;	     /* 0: all */
	const char *svg;     /* NULL: none */
	const char *thread;  /* a number or a name; NULL: all */
	const char *library; /* the beginning of a file's name; NULL: all */
};

/* ---- stat_symbols.c ---------------------------------------------------------- */

struct fg_symbols;

/* Of a running process.  NULL and one sentence in `why`. */
struct fg_symbols *fg_symbols_open(pid_t pid, char *why, size_t size);
void fg_symbols_close(struct fg_symbols *s);

/* Where an object of our libraries, or of the program, lies in the process; 0: there is none. */
uint64_t fg_symbols_find(struct fg_symbols *s, const char *name, bool in_program);
/* Of a return address: "function+0x12 (file.c:34)", as far as it is known; else the address. */
void fg_symbols_code(struct fg_symbols *s, uint64_t address, char *text, size_t size);
/* The same, the function alone. */
void fg_symbols_function(struct fg_symbols *s, uint64_t address, char *text, size_t size);
/* "object+0x8"; the address, if it is in no object that has a name. */
void fg_symbols_data(struct fg_symbols *s, uint64_t address, char *text, size_t size);
/* Whether a return address lies in a file whose name begins so. */
bool fg_symbols_in(struct fg_symbols *s, uint64_t address, const char *file);

/*
 * The return addresses of a copied stack, the innermost first, without those in FlexGuard's own
 * library; 0 as the last one: the copy ended there.  Returns how many.
 */
#define FG_FRAMES 128
size_t fg_symbols_unwind(struct fg_symbols *s, const struct fg_trace_stack *stack, uint64_t *pc);

/* ---- stat_files.c ------------------------------------------------------------ */

/* Before any is opened. */
void fg_stat_find_root(pid_t pid);
/*
 * A descriptor or -1; *file: what it is called here, to be freed.  *trusted: the machine's, and
 * root's or the caller's own.
 */
int fg_stat_open_file(const char *name, char **file, bool *trusted);

/* ---- stat_memory.c ----------------------------------------------------------- */

struct fg_stat_target {
	pid_t pid;
	int socket;		     /* of the child that has its memory open, or -errno */
	struct fg_stat_order *order; /* shared with that */
	int64_t ahead_ns;	     /* fg_clock_ahead_ns() */
	uint64_t table;		     /* its address there */
};

/*
 * Its memory as of now, before anything else is asked about the process: addresses that are found
 * afterwards are looked up in this one.  A failure is what fg_stat_transfer() returns.
 */
void fg_stat_open(struct fg_stat_target *t);
void fg_stat_close(struct fg_stat_target *t);
/*
 * Reads or writes it, as much as a table at most.  0 or -errno; -ESRCH: it is gone, by the
 * process's end or by exec; -ETIMEDOUT: what is mapped there does not answer, nor will it be asked
 * again.
 */
int fg_stat_transfer(struct fg_stat_target *t, uint64_t there, void *here, size_t size, bool out);

/* ---- stat_watch.c ------------------------------------------------------------ */

struct fg_stacks;

/* Checks what lies there, and empties it.  0 or an exit status; says why. */
int fg_stat_prepare(struct fg_stat_target *t, const struct fg_stat_options *o,
		    struct fg_trace *table);
/*
 * Until something ends it; the last state of the table is in `table`.  True if the process has
 * ended.  `stacks`: NULL, or gets what comes.
 */
bool fg_stat_watch(struct fg_stat_target *t, const struct fg_stat_options *o,
		   struct fg_trace *table, struct fg_stacks *stacks);

/* ---- stat_stacks.c ----------------------------------------------------------- */

/* One stack, and what was waited there, by samples. */
struct fg_stack {
	uint64_t weight_ns, max_ns, samples;
	size_t frames;
	uint64_t pc[]; /* as of fg_symbols_unwind() */
};

/* NULL: out of memory. */
struct fg_stacks *fg_stacks_new(struct fg_symbols *symbols, const char *library);
void fg_stacks_free(struct fg_stacks *s);
/* Takes over what threads have left; true: there are more than can be taken. */
bool fg_stacks_take(struct fg_stacks *s, struct fg_stat_target *t, const struct fg_trace *table);
/* The longest waits first; how many. */
size_t fg_stacks_rows(struct fg_stacks *s, struct fg_stack *const **rows);
/* Of all rows, those that the library hides included: the weight of them, and how many samples. */
uint64_t fg_stacks_weight(const struct fg_stacks *s, uint64_t *samples);

/* ---- stat_flame.c ------------------------------------------------------------ */

/* What a flame graph is made of: "main;work;wait 1234", in us; one line a stack. */
void fg_flame_folded(FILE *f, struct fg_symbols *s, struct fg_stack *const *rows, size_t n,
		     const char *program, double scale);
/* The graph.  0 or -errno. */
int fg_flame_svg(const char *path, struct fg_symbols *s, struct fg_stack *const *rows, size_t n,
		 const char *program, const char *title, double scale);

/* ---- demangle.c -------------------------------------------------------------- */

/* What a symbol of C++ or Rust says, without the parameters; false: it is of neither. */
bool fg_demangle(const char *symbol, char *text, size_t size);

#endif
