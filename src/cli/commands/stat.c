/* SPDX-License-Identifier: MIT */
/*
 * `flexguard stat`: switches on the table of abi/trace.h in a running process, reads
 * it after a while (stat_watch.c), and shows it.
 */
#include "cli/commands/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/json.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "monitor/clock.h"

/* ---- what was found --------------------------------------------------------- */

struct row {
	uint64_t key;
	uint64_t count, total_ns, max_ns;
};

static int by_total(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static int by_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* One row for each key, the longest waits first. */
static size_t make_rows(const struct fg_trace *table, const struct fg_stat_options *o,
			struct fg_symbols *symbols, struct row *row)
{
	bool by_lock = o->by == FG_STAT_BY_LOCK;
	size_t n = 0, rows = 0;

	for (size_t i = 0; i < FG_TRACE_ENTRIES; i++) {
		const struct fg_trace_entry *e = &table->entry[i];

		if (e->lock && e->count &&
		    (!o->library || o->by == FG_STAT_BY_STACK ||
		     fg_symbols_in(symbols, e->caller, o->library)))
			row[n++] = (struct row){by_lock ? e->lock : e->caller, e->count,
						e->total_ns, e->max_ns};
	}
	qsort(row, n, sizeof(*row), by_key);
	for (size_t i = 0; i < n; i++) {
		if (rows && row[rows - 1].key == row[i].key) {
			struct row *r = &row[rows - 1];

			r->count += row[i].count;
			r->total_ns += row[i].total_ns;
			r->max_ns = row[i].max_ns > r->max_ns ? row[i].max_ns : r->max_ns;
		} else {
			row[rows++] = row[i];
		}
	}
	qsort(row, rows, sizeof(*row), by_total);
	return rows;
}

/* The numbers are another program's, and may be any: their sum may be 0. */
static uint64_t average_ns(const struct row *r)
{
	return r->count ? r->total_ns / r->count : 0;
}

static uint64_t scaled(uint64_t ns, double scale)
{
	double product = (double)ns * scale;

	return product < (double)UINT64_MAX ? (uint64_t)product : UINT64_MAX;
}

static void name_of(struct fg_symbols *s, const struct fg_stat_options *o, uint64_t key, char *text,
		    size_t size)
{
	if (o->by == FG_STAT_BY_LOCK)
		fg_symbols_data(s, key, text, size);
	else if (key == 1)
		snprintf(text, size, "?");
	else
		fg_symbols_code(s, key, text, size);
}

struct result {
	const struct row *row;
	size_t rows;
	uint64_t waits, total_ns, lost;
	uint64_t took_ns;
	char program[32];
	/* by stack: */
	struct fg_stack *const *stack;
	size_t stacks;
	uint64_t samples;
	double scale; /* what a ns of a sample stands for: samples are shares of the whole */
};

static void print_stacks(const struct result *r, const struct fg_stat_options *o,
			 struct fg_symbols *s)
{
	int columns = fg_columns(STDOUT_FILENO);
	char c[2][24], text[512];

	if (!r->stacks)
		return;
	printf("\n%10s %6s %8s %10s  %s\n", "TOTAL", "SHARE", "SAMPLES", "MAX", "STACK");
	for (size_t i = 0; i < r->stacks && (!o->rows || i < o->rows); i++) {
		const struct fg_stack *w = r->stack[i];
		double ns = (double)w->weight_ns * r->scale;

		printf("%10s %5.1f%% %8" PRIu64 " %10s", fg_human_ns(c[0], sizeof(c[0]), ns),
		       r->total_ns ? 100 * ns / (double)r->total_ns : 0, w->samples,
		       fg_human_ns(c[1], sizeof(c[1]), (double)w->max_ns));
		for (size_t k = 0; k < w->frames; k++) {
			fg_symbols_code(s, w->pc[k], text, sizeof(text));
			fg_cut(text, columns > 50 ? columns - 40 : 0);
			printf("%*s%s\n", k ? 39 : 2, "", text);
		}
	}
	if (o->rows && r->stacks > o->rows)
		printf("%10s and %zu more (-n 0 shows all)\n", "", r->stacks - o->rows);
}

static void print_table(const struct result *r, const struct fg_stat_options *o,
			struct fg_symbols *s)
{
	int columns = fg_columns(STDOUT_FILENO);
	char c[3][24], text[512];

	fg_put_text("flexguard stat: %s (%d), %.1f s: %s waits, %s in all", r->program, (int)o->pid,
		    (double)r->took_ns / 1e9, fg_human_count(c[0], sizeof(c[0]), (double)r->waits),
		    fg_human_ns(c[1], sizeof(c[1]), (double)r->total_ns));
	if (r->lost)
		printf("%" PRIu64 " more had no room in the table\n", r->lost);
	if (o->by == FG_STAT_BY_STACK)
		print_stacks(r, o, s);
	if (!r->rows || o->by == FG_STAT_BY_STACK)
		return;
	printf("\n%10s %10s %10s %10s  %s\n", "CONTENDED", "TOTAL", "MAX", "AVERAGE",
	       o->by == FG_STAT_BY_LOCK ? "LOCK" : "CALLER");
	for (size_t i = 0; i < r->rows && (!o->rows || i < o->rows); i++) {
		const struct row *w = &r->row[i];

		name_of(s, o, w->key, text, sizeof(text));
		fg_cut(text, columns > 50 ? columns - 45 : 0);
		printf("%10" PRIu64 " %10s %10s %10s  %s\n", w->count,
		       fg_human_ns(c[0], sizeof(c[0]), (double)w->total_ns),
		       fg_human_ns(c[1], sizeof(c[1]), (double)w->max_ns),
		       fg_human_ns(c[2], sizeof(c[2]), (double)average_ns(w)), text);
	}
	if (o->rows && r->rows > o->rows)
		printf("%10s and %zu more (-n 0 shows all)\n", "", r->rows - o->rows);
}

static void json_of_stacks(struct fg_json *j, const struct result *r,
			   const struct fg_stat_options *o, struct fg_symbols *s)
{
	char text[512];

	for (size_t i = 0; i < r->stacks && (!o->rows || i < o->rows); i++) {
		const struct fg_stack *w = r->stack[i];

		fg_json_open(j, NULL, '{');
		fg_json_count(j, "samples", w->samples);
		fg_json_count(j, "total_wait_ns", scaled(w->weight_ns, r->scale));
		fg_json_count(j, "max_wait_ns", w->max_ns);
		fg_json_open(j, "stack", '[');
		for (size_t k = 0; k < w->frames && w->pc[k]; k++) {
			fg_json_open(j, NULL, '{');
			fg_symbols_function(s, w->pc[k], text, sizeof(text));
			fg_json_text(j, "function", text);
			fg_symbols_code(s, w->pc[k], text, sizeof(text));
			fg_json_text(j, "place", text);
			snprintf(text, sizeof(text), "0x%" PRIx64, w->pc[k]);
			fg_json_text(j, "address", text);
			fg_json_close(j, '}');
		}
		fg_json_close(j, ']');
		fg_json_flag(j, "cut_off", w->frames && !w->pc[w->frames - 1]);
		fg_json_close(j, '}');
	}
}

static void print_json(const struct result *r, const struct fg_stat_options *o,
		       struct fg_symbols *s)
{
	const char *what = o->by == FG_STAT_BY_STACK ? "stack" :
			   o->by == FG_STAT_BY_LOCK  ? "lock" :
						       "caller";
	struct fg_json j = {.f = stdout};
	char text[512];

	fg_json_open(&j, NULL, '{');
	fg_json_int(&j, "pid", o->pid);
	fg_json_text(&j, "program", r->program);
	fg_json_real(&j, "seconds", 3, (double)r->took_ns / 1e9);
	fg_json_count(&j, "contended", r->waits);
	fg_json_count(&j, "total_wait_ns", r->total_ns);
	fg_json_count(&j, "lost", r->lost);
	fg_json_text(&j, "by", what);
	if (o->by == FG_STAT_BY_STACK)
		fg_json_count(&j, "samples", r->samples);
	fg_json_open(&j, "rows", '[');
	if (o->by == FG_STAT_BY_STACK)
		json_of_stacks(&j, r, o, s);
	for (size_t i = 0; o->by != FG_STAT_BY_STACK && i < r->rows && (!o->rows || i < o->rows);
	     i++) {
		const struct row *w = &r->row[i];

		fg_json_open(&j, NULL, '{');
		name_of(s, o, w->key, text, sizeof(text));
		fg_json_text(&j, what, text);
		snprintf(text, sizeof(text), "0x%" PRIx64, w->key);
		fg_json_text(&j, "address", text);
		fg_json_count(&j, "contended", w->count);
		fg_json_count(&j, "total_wait_ns", w->total_ns);
		fg_json_count(&j, "max_wait_ns", w->max_ns);
		fg_json_count(&j, "avg_wait_ns", average_ns(w));
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

/* What was counted, from the table and the samples. */
static void find_out(struct result *r, const struct fg_trace *table,
		     const struct fg_stat_options *o, struct fg_symbols *symbols,
		     struct fg_stacks *stacks, struct row *row)
{
	uint64_t weight;

	r->row = row;
	r->rows = make_rows(table, o, symbols, row);
	r->lost = table->lost;
	for (size_t i = 0; i < r->rows; i++) {
		r->waits += row[i].count;
		r->total_ns += row[i].total_ns;
	}
	if (!stacks)
		return;
	r->stacks = fg_stacks_rows(stacks, &r->stack);
	weight = fg_stacks_weight(stacks, &r->samples);
	r->scale = weight ? (double)r->total_ns / (double)weight : 0;
}

static int show(const struct result *r, const struct fg_stat_options *o, struct fg_symbols *symbols)
{
	char title[200], c[2][24];
	int err;

	if (o->folded)
		fg_flame_folded(stdout, symbols, r->stack, r->stacks, r->program, r->scale);
	else if (o->json)
		print_json(r, o, symbols);
	else
		print_table(r, o, symbols);
	if (!o->svg)
		return 0;
	snprintf(title, sizeof(title), "%s: %s waited for locks in %.1f s, %s waits", r->program,
		 fg_human_ns(c[0], sizeof(c[0]), (double)r->total_ns), (double)r->took_ns / 1e9,
		 fg_human_count(c[1], sizeof(c[1]), (double)r->waits));
	err = fg_flame_svg(o->svg, symbols, r->stack, r->stacks, r->program, title, r->scale);
	if (err)
		fg_error("cannot write %s: %s", o->svg, strerror(-err));
	return err ? FG_EXIT_OWN : 0;
}

static int watch_and_show(struct fg_stat_target *t, const struct fg_stat_options *o,
			  struct fg_symbols *symbols, struct result *r, struct fg_trace *table)
{
	static struct row row[FG_TRACE_ENTRIES];
	struct fg_stacks *stacks = NULL;
	uint64_t start, own;
	int status;

	if (o->by == FG_STAT_BY_STACK) {
		stacks = fg_stacks_new(symbols, o->library);
		if (!stacks) {
			fg_error("out of memory");
			return FG_EXIT_OWN;
		}
	}
	fg_catch_interrupts();
	if (isatty(STDERR_FILENO) && !o->for_ns)
		fg_note("looking at process %d; Ctrl-C ends", (int)o->pid);
	start = fg_now_ns();
	if (fg_stat_watch(t, o, table, stacks))
		fg_note("process %d %s; this is how it was half a second before", (int)o->pid,
			t->socket == -ETIMEDOUT ? "does not answer any more" :
						  "has ended, or runs another program");
	r->took_ns = fg_now_ns() - start;
	find_out(r, table, o, symbols, stacks, row);
	status = show(r, o, symbols);
	/* Not before: it may have many symbols. */
	own = r->waits ? 0 : fg_symbols_find(symbols, FG_TRACE_SYMBOL, true);
	if (own && own != t->table)
		fg_note("%s has locks in itself (libflexguard.a), which are not looked at under "
			"flexguard run: start it without",
			r->program);
	fg_stacks_free(stacks);
	return status;
}

/* Known before an hour of counting, not after it.  A pipe is opened once, at the end. */
static bool can_write(const char *file, bool *made)
{
	struct stat st;
	int fd;

	if (!stat(file, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return true;
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	*made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		fg_error("cannot write %s: %s", file, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

/*
 * What the program's files hold may be compressed, some thousand times (.gnu_debugdata), and its
 * stacks may all be different ones.  libdw, and what is ours, can do without the memory.
 */
static void limit_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct rlimit r;

	if (pages <= 0 || page <= 0 || getrlimit(RLIMIT_DATA, &r))
		return;
	if (r.rlim_cur > (rlim_t)pages * (rlim_t)page / 2) {
		r.rlim_cur = (rlim_t)pages * (rlim_t)page / 2;
		setrlimit(RLIMIT_DATA, &r);
	}
}

static int look(const struct fg_stat_options *o)
{
	static struct fg_trace table;
	struct fg_stat_target t = {.pid = o->pid};
	struct result r = {0};
	struct fg_symbols *symbols;
	char why[300];
	bool made = false;
	int status;

	limit_memory();
	fg_stat_open(&t);
	symbols = fg_symbols_open(o->pid, why, sizeof(why));
	if (!symbols) {
		fg_error("%s", why);
		fg_stat_close(&t);
		return FG_EXIT_OWN;
	}
	fg_program_name(o->pid, r.program, sizeof(r.program));
	t.table = fg_symbols_find(symbols, FG_TRACE_SYMBOL, false);
	if (!t.table) /* it may have the locks in itself (libflexguard.a) */
		t.table = fg_symbols_find(symbols, FG_TRACE_SYMBOL, true);
	if (!t.table && !strcmp(r.program, "flexguard"))
		fg_error("process %d is flexguard run itself: its program's number is wanted "
			 "(pgrep -lP %d)",
			 (int)o->pid, (int)o->pid);
	else if (!t.table)
		fg_error("process %d (%s) does not run on FlexGuard's locks: start it with "
			 "flexguard run",
			 (int)o->pid, r.program);
	status = t.table && (!o->svg || can_write(o->svg, &made)) ? fg_stat_prepare(&t, o, &table) :
								    FG_EXIT_OWN;
	if (!status)
		status = watch_and_show(&t, o, symbols, &r, &table);
	else if (made) /* there is nothing to draw */
		unlink(o->svg);
	fg_symbols_close(symbols);
	fg_stat_close(&t);
	return status;
}

/* ---- command line ------------------------------------------------------------ */

static bool set_pid(struct fg_stat_options *o, const char *text)
{
	uint64_t pid;

	if (!fg_integer(text, 1, INT_MAX, &pid))
		return false;
	o->pid = (pid_t)pid;
	return true;
}

static enum fg_stat_by by_of(const char *text)
{
	return !strcmp(text, "stack") ? FG_STAT_BY_STACK :
	       !strcmp(text, "lock")  ? FG_STAT_BY_LOCK :
					FG_STAT_BY_CALLER;
}

int fg_cmd_stat(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct fg_stat_options o = {.rows = 40};
	bool by = false;
	int option;

	while ((option = fg_arguments_next(&a)) >= 0)
		switch (option) {
		case FG_STAT_JSON: o.json = true; break;
		case FG_STAT_PID:
			if (o.pid)
				return fg_arguments_bad("too many processes: one at a time");
			if (!set_pid(&o, a.value))
				return fg_arguments_bad(
				    "-p needs the number of a process: pidof PROGRAM tells it");
			break;
		case FG_STAT_DURATION:
			o.for_ns = fg_duration_ns(a.value);
			if (!o.for_ns)
				return fg_arguments_bad(
				    "-d needs a time: more than 0, such as 10, 300ms or 5min");
			break;
		case FG_STAT_ROWS:
			if (!fg_integer(a.value, 0, UINT64_MAX, &o.rows))
				return fg_arguments_bad("-n needs a number: of rows, 0 for all");
			break;
		case FG_STAT_BY:
			o.by = by_of(a.value);
			by = true;
			break;
		case FG_STAT_FOLDED: o.folded = true; break;
		case FG_STAT_SVG: o.svg = a.value; break;
		case FG_STAT_THREAD: o.thread = a.value; break;
		case FG_STAT_LIBRARY: o.library = a.value; break;
		}
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (o.svg && !*o.svg)
		return fg_arguments_bad("--svg has no value: name a file");
	if (o.thread && !*o.thread)
		return fg_arguments_bad("-t has no value: the number or the name of a thread");
	if (o.library && !*o.library)
		return fg_arguments_bad("-l has no value: how a file's name begins");
	if (o.folded && o.json)
		return fg_arguments_bad("--folded and --json: one of them");
	if ((o.folded || o.svg) && by && o.by != FG_STAT_BY_STACK)
		return fg_arguments_bad("--folded and --svg are of stacks: with --by stack");
	if (o.folded || o.svg)
		o.by = FG_STAT_BY_STACK;
	if (a.next < argc && o.pid)
		return fg_arguments_bad("too many processes: one at a time");
	if (a.next < argc && !set_pid(&o, argv[a.next++]))
		return fg_arguments_bad(
		    "which process: its number is wanted (pidof PROGRAM tells it)");
	if (a.next < argc)
		return fg_arguments_bad("too many processes: one at a time");
	return o.pid ? look(&o) : fg_arguments_bad("no process: flexguard stat PID");
}
