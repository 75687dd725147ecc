/* SPDX-License-Identifier: MIT */
/* `flexguard locks`: what --lock can name. */
#include <string.h>
#include <unistd.h>

#include "abi/options.h"
#include "cli/commands/commands.h"
#include "cli/commands/locks.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/json.h"
#include "cli/common/text.h"
#include "zoo/extension.h"
#include "zoo/table.h"

struct row {
	const char *name, *family, *paper, *fairness;
	unsigned lock_bytes, thread_bytes, can;
	bool rwlock;
};

#define X(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, family, paper, fairness, lock_bytes, thread_bytes, can, false},
#define RW(id, name, family, paper, fairness, lock_bytes, thread_bytes, can) \
	{name, family, paper, fairness, lock_bytes, thread_bytes, can, true},
static const struct row rows[] = {
    {"flexguard", "preemption-aware", "docs/design/lock.md; after " ZOO_SOSP2025,
     "FIFO while spinning", 24, 252, ZOO_TIMED | ZOO_OVERSUBSCRIBED, false},
    {"glibc", "blocking", "nothing is preloaded", "none", 40, 0, ZOO_ORDINARY, false},
    ZOO_TABLE(X) ZOO_RWLOCK_TABLE(RW)};
#undef X
#undef RW
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* A sentence if the lock cannot run on this machine. */
static const char *unavailable(const struct row *r)
{
	static const char *why;
	static bool tried;

	if (!(r->can & ZOO_EXTENSION))
		return NULL;
	if (!tried) { /* it changes this thread, once */
		why = zoo_extension_enable();
		tried = true;
	}
	return why;
}

const char *fg_lock_unavailable(const char *name)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (!strcmp(rows[i].name, name))
			return unavailable(&rows[i]);
	return NULL;
}

/* What --lock says before the program starts. */
const char *fg_lock_caveat(const char *name)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (!strcmp(rows[i].name, name) && rows[i].can & ZOO_NO_REREAD)
			return "a thread that holds a read lock must not take it again: with a "
			       "writer in between both wait for ever";
	return NULL;
}

/* With more threads than CPUs, whatever the monitor says. */
static bool collapses(const struct row *r)
{
	return !(r->can & ZOO_OVERSUBSCRIBED) &&
	       (r->can & ZOO_COLLAPSES || !(r->can & ZOO_MONITOR));
}

/* More threads than CPUs. */
static const char *oversubscribed(const struct row *r)
{
	return r->can & ZOO_OVERSUBSCRIBED ? "yes" : collapses(r) ? "no" : "monitor";
}

/* Without family, fairness and paper. */
static void print_narrow_table(void)
{
	char folded[160];

	fg_put_row("%-31s %6s %6s", "", "LOCK", "THREAD");
	fg_put_row("%-31s %6s %6s  %-5s  %-7s  %-6s", "NAME", "B", "B", "TIMED", "OVERSUB",
		   "SHARED");
	for (size_t i = 0; i < NR_ROWS; i++) {
		const struct row *r = &rows[i];

		fg_put_row("%-30s%s %6u %6u  %-5s  %-7s  %s", r->name, unavailable(r) ? "*" : " ",
			   r->lock_bytes, r->thread_bytes, r->can & ZOO_TIMED ? "own" : "polls",
			   oversubscribed(r), r->can & ZOO_SHARED ? "yes" : "no");
	}
	fg_fold(folded, sizeof(folded),
		"\nfamily, fairness and paper: flexguard locks --json, or | less -S", 0, 2,
		fg_help_columns());
	puts(folded);
}

#define FULL_COLUMNS 195 /* of the table with all of it */

static void print_table(void)
{
	printf("%-31s %-21s %4s %6s  %-5s  %-7s  %-6s  %-24s %s\n", "", "", "LOCK", "THREAD", "",
	       "", "", "", "");
	printf("%-31s %-21s %4s %6s  %-5s  %-7s  %-6s  %-24s %s\n", "NAME", "FAMILY", "B", "B",
	       "TIMED", "OVERSUB", "SHARED", "FAIRNESS", "PAPER");
	for (size_t i = 0; i < NR_ROWS; i++) {
		const struct row *r = &rows[i];

		printf("%-30s%s %-21s %4u %6u  %-5s  %-7s  %-6s  %-24s %s\n", r->name,
		       unavailable(r) ? "*" : " ", r->family, r->lock_bytes, r->thread_bytes,
		       r->can & ZOO_TIMED ? "own" : "polls", oversubscribed(r),
		       r->can & ZOO_SHARED ? "yes" : "no", r->fairness, r->paper);
	}
}

static void print_json(void)
{
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '[');
	for (size_t i = 0; i < NR_ROWS; i++) {
		const struct row *r = &rows[i];

		fg_json_line(&j);
		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "name", r->name);
		fg_json_text(&j, "kind", r->rwlock ? "rwlock" : "mutex");
		fg_json_text(&j, "family", r->family);
		fg_json_text(&j, "paper", r->paper);
		fg_json_text(&j, "fairness", r->fairness);
		fg_json_count(&j, "lock_bytes", r->lock_bytes);
		fg_json_count(&j, "thread_bytes", r->thread_bytes);
		fg_json_flag(&j, "oversubscription", r->can & ZOO_OVERSUBSCRIBED);
		fg_json_flag(&j, "collapses", collapses(r));
		fg_json_flag(&j, "needs_monitor", r->can & ZOO_MONITOR);
		fg_json_flag(&j, "needs_extension", r->can & ZOO_EXTENSION);
		fg_json_flag(&j, "available", !unavailable(r));
		fg_json_open(&j, "supports", '{');
		fg_json_flag(&j, "trylock", true);
		fg_json_text(&j, "timed", r->can & ZOO_TIMED ? "own" : "polling");
		fg_json_flag(&j, "condvars", true);
		fg_json_flag(&j, "process_shared", r->can & ZOO_SHARED);
		fg_json_flag(&j, "recursive_read", !(r->can & ZOO_NO_REREAD));
		fg_json_close(&j, '}');
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	fg_json_end(&j);
}

int fg_cmd_locks(int argc, char **argv)
{
	struct fg_arguments a = fg_arguments(argc, argv);
	bool json = false;
	int columns, option;

	while ((option = fg_arguments_next(&a)) == FG_LOCKS_JSON)
		json = true;
	if (option == FG_ARGUMENTS_EXIT)
		return a.status;
	if (!fg_arguments_no_more(&a))
		return FG_EXIT_OWN;
	columns = fg_columns(STDOUT_FILENO);
	if (json)
		print_json();
	else if (columns && columns < FULL_COLUMNS)
		print_narrow_table();
	else
		print_table();
	return 0;
}
