/* SPDX-License-Identifier: MIT */
/* `flexguard top`: batch mode, the command line. */
#include "cli/commands/top.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/json.h"
#include "cli/common/message.h"
#include "cli/common/query.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "cli/launch/embed.h"
#include "monitor/clock.h"

/* What -d may be, at most.  Not varied. */
#define DELAY_MAX_NS 86400000000000u

#define KERNEL_LOCKS 10 /* in a table, so that it leaves room for the programs; not varied */

/* Cut as the screen does. */
static void put_line(char *text, int columns)
{
	if (columns)
		text[fg_first(text, columns)] = '\0';
	puts(text);
}

static void print_locks(const struct fg_top_kernel *k, int columns)
{
	const struct fg_top_lock *lock;
	size_t n = fg_top_kernel_locks(k, &lock);
	char text[256];

	fg_top_kernel_summary(k, text, sizeof(text));
	putchar('\n');
	put_line(text, columns);
	if (!n)
		return;
	fg_top_kernel_header(text, sizeof(text));
	put_line(text, columns);
	for (size_t i = 0; i < n && i < KERNEL_LOCKS; i++) {
		fg_top_kernel_line(&lock[i], text, sizeof(text));
		put_line(text, columns);
	}
}

static void print_table(const struct fg_top *t)
{
	int columns = fg_columns(STDOUT_FILENO);
	char text[256];

	for (int i = 0; i < FG_TOP_SUMMARY_LINES; i++) {
		fg_top_summary(t, i, text, sizeof(text));
		fg_cut(text, columns);
		puts(text);
	}
	fg_top_hidden(t, text, sizeof(text));
	if (*text)
		puts(text);
	fg_top_header(t, text, sizeof(text));
	putchar('\n');
	put_line(text, columns);
	for (size_t i = 0; i < t->rows; i++) {
		fg_top_line(t, &t->row[i], text, sizeof(text));
		put_line(text, columns);
	}
	if (t->kernel)
		print_locks(t->kernel, columns);
}

static void print_json(const struct fg_top *t)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_json_int(&j, "time", (long long)time(NULL));
	fg_json_real(&j, "seconds", 3, (double)t->between_ns / 1e9);
	fg_json_count(&j, "processes_monitored", t->monitored);
	fg_json_count(&j, "hidden_processes", t->hidden);
	fg_json_real(&j, "preempted_per_second", 1, t->preempted);
	fg_json_real(&j, "switch_cost_ns", 1, t->cost_ns > 0 ? t->cost_ns : NAN);
	fg_json_open(&j, "processes", '[');
	for (size_t i = 0; i < t->rows; i++) {
		const struct fg_top_row *r = &t->row[i];

		fg_json_open(&j, NULL, '{');
		fg_json_int(&j, "pid", r->pid);
		fg_json_text(&j, "user", r->user);
		fg_json_text(&j, "program", r->program);
		fg_json_count(&j, "threads", r->threads);
		fg_json_count(&j, "runnable_threads", r->runnable);
		fg_json_real(&j, "contended_per_second", 1, r->contended);
		fg_json_real(&j, "spun_per_second", 1, r->spun);
		fg_json_real(&j, "parks_per_second", 1, r->parks);
		fg_json_real(&j, "holder_preemptions_per_second", 1, r->preemptions);
		fg_json_real(&j, "blocked_threads", 4, r->blocked);
		if (t->kernel)
			fg_json_real(&j, "kernel_waiting_threads", 4, r->kernel);
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	if (t->kernel)
		fg_top_kernel_json(t->kernel, &j);
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

static int batch(struct fg_top *t, uint64_t iterations, bool json, char *why, size_t size)
{
	struct timespec delay = fg_timespec(t->delay_ns);
	int err = fg_top_sample(t, why, size);

	for (uint64_t i = 0; !err && (iterations == 0 || i < iterations); i++) {
		nanosleep(&delay, NULL);
		err = fg_top_sample(t, why, size);
		if (err)
			break;
		if (json)
			print_json(t);
		else
			print_table(t);
		if (!json && i + 1 != iterations)
			putchar('\n');
		if (fflush(stdout))
			break; /* nobody reads any more */
	}
	return err;
}

/* ---- command line -------------------------------------------------------------- */

static void set_key(struct fg_top *t, const char *name)
{
	for (size_t k = 0; k <= FG_TOP_PID; k++)
		if (!strcmp(name, fg_top_key_name[k]))
			t->key = (enum fg_top_key)k;
}

/* 0, or an exit status + 1. */
static int parse(struct fg_top *t, int argc, char **argv, bool *text, uint64_t *iterations,
		 bool *json, bool *kernel)
{
	struct fg_arguments a = fg_arguments(argc, argv);

	for (;;)
		switch (fg_arguments_next(&a)) {
		case FG_TOP_BATCH: *text = true; break;
		case FG_TOP_KERNEL: *kernel = true; break;
		case FG_TOP_JSON: *text = *json = true; break;
		case FG_TOP_SOCKET:
			if (!fg_socket_option(&a, &t->socket))
				return FG_EXIT_OWN + 1;
			break;
		case FG_TOP_ITERATIONS:
			if (!fg_integer(a.value, 1, UINT64_MAX, iterations))
				return fg_arguments_bad("-n needs a number: of tables, 1 or more") +
				       1;
			break;
		case FG_TOP_DELAY:
			t->delay_ns = fg_duration_ns(a.value);
			if (t->delay_ns < FG_TOP_DELAY_MIN_NS || t->delay_ns > DELAY_MAX_NS)
				return fg_arguments_bad(
					   "-d needs a time: such as 0.5 or 300ms, from 10ms to 24h") +
				       1;
			break;
		case FG_TOP_SORT: set_key(t, a.value); break;
		case FG_ARGUMENTS_END: return fg_arguments_no_more(&a) ? 0 : FG_EXIT_OWN + 1;
		default: return a.status + 1;
		}
}

int fg_cmd_top(int argc, char **argv)
{
	struct fg_top t = {.socket = fg_socket_path(), .delay_ns = FG_DELAY_NS};
	bool text = false, json = false, kernel = false;
	uint64_t iterations = 0;
	char why[300];
	int err = parse(&t, argc, argv, &text, &iterations, &json, &kernel);

	if (err)
		return err - 1;
	if (!text && !isatty(STDOUT_FILENO)) {
		fg_error("the output is not a terminal: use -b, or --json");
		return FG_EXIT_OWN;
	}
	err = kernel ? fg_top_kernel_open(&t.kernel, why, sizeof(why)) : 0;
	if (err) {
		fg_error("--kernel: %s", why);
		return fg_exit_of(err);
	}
	err = text ? batch(&t, iterations, json, why, sizeof(why)) :
		     fg_top_screen(&t, iterations, why, sizeof(why));
	if (err)
		fg_error("%s", why);
	fg_top_kernel_close(t.kernel);
	fg_answer_free(&t.last);
	free(t.row);
	return err ? FG_EXIT_OWN : 0;
}
