/* SPDX-License-Identifier: MIT */
/*
 * `flexguard stat`: switches on the table of abi/trace.h in a running process, reads
 * it after a while, and shows it.  The table is on for two seconds at a time, so
 * that it goes off by itself if this command is killed.
 */
#include "cli/commands/stat.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
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

/* How long the table is on, and how often that is renewed.  Not varied. */
#define LEASE_NS 2000000000ull
#define RENEW_NS 500000000ull

struct options {
	pid_t pid;
	uint64_t for_ns; /* 0: no limit */
	bool by_lock, json;
	uint64_t rows;
};

struct target {
	pid_t pid;
	uint64_t table; /* its address there */
};

/* 0 or -errno. */
static int transfer(const struct target *t, size_t offset, void *here, size_t size, bool out)
{
	struct iovec local = {here, size}, remote = {(void *)(uintptr_t)(t->table + offset), size};
	ssize_t n = out ? process_vm_writev(t->pid, &local, 1, &remote, 1, 0) :
			  process_vm_readv(t->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

static int set_until(const struct target *t, uint64_t until_ns)
{
	return transfer(t, offsetof(struct fg_trace, until_ns), &until_ns, sizeof(until_ns), true);
}

static const char *reason(int err)
{
	if (err == -EPERM)
		return "not permitted: this takes the right to debug it (its user, or "
		       "CAP_SYS_PTRACE; kernel.yama.ptrace_scope)";
	return err == -ESRCH ? "it has ended" : strerror(-err);
}

/* Checks what lies there, and empties it.  0 or an exit status; says why. */
static int prepare(const struct target *t, struct fg_trace *table)
{
	int err = transfer(t, 0, table, sizeof(*table), false);
	bool used = table->lost;

	if (err) {
		fg_error("cannot read process %d: %s", (int)t->pid, reason(err));
		return FG_EXIT_OWN;
	}
	if (table->magic != FG_TRACE_MAGIC || table->abi != FG_TRACE_ABI ||
	    table->entries != FG_TRACE_ENTRIES) {
		fg_error(
		    "the library in process %d is of another version: start it with this flexguard",
		    (int)t->pid);
		return FG_EXIT_OWN;
	}
	if (table->until_ns > fg_now_ns()) {
		fg_error("another flexguard stat looks at process %d: wait for its end",
			 (int)t->pid);
		return FG_EXIT_OWN;
	}
	for (size_t i = 0; i < FG_TRACE_ENTRIES && !used; i++)
		used = table->entry[i].caller;
	if (used) {
		table->lost = 0;
		table->until_ns = 0;
		memset(table->entry, 0, sizeof(table->entry));
		err = transfer(t, 0, table, sizeof(*table), true);
	}
	if (!err)
		err = set_until(t, fg_now_ns() + LEASE_NS);
	if (err)
		fg_error("cannot write to process %d: %s", (int)t->pid, reason(err));
	return err ? FG_EXIT_OWN : 0;
}

/*
 * Until something ends it; the last state of the table is in `table`.  True if the process has
 * ended.
 */
static bool watch(const struct target *t, uint64_t for_ns, struct fg_trace *table)
{
	uint64_t start = fg_now_ns(), end = for_ns ? start + for_ns : UINT64_MAX;
	static struct fg_trace copy;
	bool gone = false;

	while (!fg_interrupted && !gone && fg_now_ns() < end) {
		uint64_t left = end - fg_now_ns(), step = RENEW_NS;
		struct timespec ts = {0};

		ts.tv_nsec = (long)(left < step ? left : step);
		nanosleep(&ts, NULL);
		gone = set_until(t, fg_now_ns() + LEASE_NS) ||
		       transfer(t, 0, &copy, sizeof(copy), false);
		if (!gone)
			memcpy(table, &copy, sizeof(copy));
	}
	set_until(t, 0);
	if (!gone && !transfer(t, 0, &copy, sizeof(copy), false))
		memcpy(table, &copy, sizeof(copy));
	return gone;
}

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
static size_t make_rows(const struct fg_trace *table, bool by_lock, struct row *row)
{
	size_t n = 0, rows = 0;

	for (size_t i = 0; i < FG_TRACE_ENTRIES; i++) {
		const struct fg_trace_entry *e = &table->entry[i];

		if (e->lock && e->count)
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

static void name_of(struct fg_symbols *s, const struct options *o, uint64_t key, char *text,
		    size_t size)
{
	if (o->by_lock)
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
};

static void print_table(const struct result *r, const struct options *o, struct fg_symbols *s)
{
	int columns = fg_columns(STDOUT_FILENO);
	char c[3][24], text[512], title[600];

	snprintf(text, sizeof(text), "flexguard stat: %s (%d), %.1f s: %s waits, %s in all",
		 r->program, (int)o->pid, (double)r->took_ns / 1e9,
		 fg_human_count(c[0], sizeof(c[0]), (double)r->waits),
		 fg_human_ns(c[1], sizeof(c[1]), (double)r->total_ns));
	fg_fold(title, sizeof(title), text, 0, 2, columns);
	puts(title);
	if (r->lost)
		printf("%" PRIu64 " more had no room in the table\n", r->lost);
	if (!r->rows)
		return;
	printf("\n%10s %10s %10s %10s  %s\n", "CONTENDED", "TOTAL", "MAX", "AVERAGE",
	       o->by_lock ? "LOCK" : "CALLER");
	for (size_t i = 0; i < r->rows && (!o->rows || i < o->rows); i++) {
		const struct row *w = &r->row[i];

		name_of(s, o, w->key, text, sizeof(text));
		fg_cut(text, columns > 50 ? columns - 45 : 0);
		printf("%10" PRIu64 " %10s %10s %10s  %s\n", w->count,
		       fg_human_ns(c[0], sizeof(c[0]), (double)w->total_ns),
		       fg_human_ns(c[1], sizeof(c[1]), (double)w->max_ns),
		       fg_human_ns(c[2], sizeof(c[2]), (double)w->total_ns / (double)w->count),
		       text);
	}
	if (o->rows && r->rows > o->rows)
		printf("%10s and %zu more (-n 0 shows all)\n", "", r->rows - o->rows);
}

static void print_json(const struct result *r, const struct options *o, struct fg_symbols *s)
{
	const char *what = o->by_lock ? "lock" : "caller";
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
	fg_json_open(&j, "rows", '[');
	for (size_t i = 0; i < r->rows && (!o->rows || i < o->rows); i++) {
		const struct row *w = &r->row[i];

		fg_json_open(&j, NULL, '{');
		name_of(s, o, w->key, text, sizeof(text));
		fg_json_text(&j, what, text);
		snprintf(text, sizeof(text), "0x%" PRIx64, w->key);
		fg_json_text(&j, "address", text);
		fg_json_count(&j, "contended", w->count);
		fg_json_count(&j, "total_wait_ns", w->total_ns);
		fg_json_count(&j, "max_wait_ns", w->max_ns);
		fg_json_count(&j, "avg_wait_ns", w->total_ns / w->count);
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

static int look(const struct options *o)
{
	static struct fg_trace table;
	static struct row row[FG_TRACE_ENTRIES];
	struct target t = {.pid = o->pid};
	struct result r = {.row = row};
	struct fg_symbols *symbols;
	char why[300];
	uint64_t start;
	int status;

	symbols = fg_symbols_open(o->pid, why, sizeof(why));
	if (!symbols) {
		fg_error("%s", why);
		return FG_EXIT_OWN;
	}
	fg_program_name(o->pid, r.program, sizeof(r.program));
	t.table = fg_symbols_find(symbols, FG_TRACE_SYMBOL);
	if (!t.table)
		fg_error("process %d (%s) does not run on FlexGuard's locks: start it with "
			 "flexguard run",
			 (int)o->pid, r.program);
	status = t.table ? prepare(&t, &table) : FG_EXIT_OWN;
	if (!status) {
		fg_catch_interrupts();
		if (isatty(STDERR_FILENO) && !o->for_ns)
			fg_note("looking at process %d; Ctrl-C ends", (int)o->pid);
		start = fg_now_ns();
		if (watch(&t, o->for_ns, &table))
			fg_note("process %d has ended; this is how it was half a second before",
				(int)o->pid);
		r.took_ns = fg_now_ns() - start;
		r.rows = make_rows(&table, o->by_lock, row);
		r.lost = table.lost;
		for (size_t i = 0; i < r.rows; i++) {
			r.waits += row[i].count;
			r.total_ns += row[i].total_ns;
		}
		if (o->json)
			print_json(&r, o, symbols);
		else
			print_table(&r, o, symbols);
	}
	fg_symbols_close(symbols);
	return status;
}

/* ---- command line ------------------------------------------------------------ */

static bool set_pid(struct options *o, const char *text)
{
	uint64_t pid;

	if (!fg_integer(text, 1, INT_MAX, &pid))
		return false;
	o->pid = (pid_t)pid;
	return true;
}

int fg_cmd_stat(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	struct options o = {.rows = 40};
	int option;

	while ((option = fg_arguments_next(&a)) >= 0)
		switch (option) {
		case FG_STAT_JSON: o.json = true; break;
		case FG_STAT_PID:
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
		case FG_STAT_BY: o.by_lock = !strcmp(a.value, "lock"); break;
		}
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (a.next < argc && o.pid)
		return fg_arguments_bad("too many processes: one at a time");
	if (a.next < argc && !set_pid(&o, argv[a.next++]))
		return fg_arguments_bad(
		    "which process: its number is wanted (pidof PROGRAM tells it)");
	if (a.next < argc)
		return fg_arguments_bad("too many processes: one at a time");
	return o.pid ? look(&o) : fg_arguments_bad("no process: flexguard stat PID");
}
