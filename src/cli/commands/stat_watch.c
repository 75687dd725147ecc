/* SPDX-License-Identifier: MIT */
/*
 * The table of abi/trace.h in another process: switched on for two seconds at a time, so that it
 * goes off by itself if this command is killed, and read.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands/stat.h"
#include "cli/common/arguments.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/message.h"
#include "cli/common/units.h"
#include "monitor/clock.h"

/* How long the table is on, and how often that is renewed.  Not varied. */
#define LEASE_NS 2000000000ull
#define RENEW_NS 500000000ull
/* How often stacks are fetched, and the period of ticks at first.  Not varied. */
#define FETCH_NS      5000000ull
#define PERIOD_NS     2000000ull
#define PERIOD_MAX_NS 1000000000ull

static int set(struct fg_stat_target *t, size_t offset, uint64_t value)
{
	return fg_stat_transfer(t, t->table + offset, &value, sizeof(value), true);
}

/* By the clock of the process's time namespace, with which its library compares it. */
static uint64_t now_there(struct fg_stat_target *t)
{
	return fg_now_ns() + (uint64_t)t->ahead_ns;
}

#define SET(t, field, value) set(t, offsetof(struct fg_trace, field), value)

static const char *reason(int err)
{
	if (err == -EPERM || err == -EACCES)
		return "not permitted: this takes the right to debug it (its user, or "
		       "CAP_SYS_PTRACE and CAP_DAC_OVERRIDE; kernel.yama.ptrace_scope)";
	if (err == -ETIMEDOUT)
		return "its memory does not answer: the program may have a file of its own there";
	return err == -ESRCH || err == -ENOENT ? "it has ended, or runs another program" :
						 strerror(-err);
}

/* ---- which threads ------------------------------------------------------------- */

static bool is_called(pid_t pid, const char *tid, const char *name)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.12s/comm", (int)pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	fclose(f);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

/* How many threads of the process it is: a number, or a name that several may have. */
static unsigned find_threads(const struct fg_stat_options *o, uint32_t tids[FG_TRACE_THREADS])
{
	char path[64];
	const struct dirent *e;
	unsigned n = 0;
	DIR *d;

	memset(tids, 0, FG_TRACE_THREADS * sizeof(*tids));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)o->pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		if (strcmp(e->d_name, o->thread) && !is_called(o->pid, e->d_name, o->thread))
			continue;
		if (n < FG_TRACE_THREADS)
			tids[n] = (uint32_t)strtoul(e->d_name, NULL, 10);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

/*
 * The thread knows itself by the number that its own pid namespace gave it, the last one of NSpid.
 */
static uint32_t number_inside(pid_t pid, uint32_t tid)
{
	char path[64], line[256];
	uint32_t number = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/status", (int)pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6)) {
			line[strcspn(line, "\n")] = '\0';
			number = (uint32_t)strtoul(strrchr(line, '\t') + 1, NULL, 10);
		}
	if (f)
		fclose(f);
	return number;
}

/* Also those that have come since: a name may be a pool's. */
static int choose_threads(struct fg_stat_target *t, const struct fg_stat_options *o,
			  unsigned *found)
{
	uint32_t tids[FG_TRACE_THREADS] = {0};

	*found = 0;
	if (o->thread) {
		*found = find_threads(o, tids);
		for (unsigned i = 0; i < *found && i < FG_TRACE_THREADS; i++)
			tids[i] = number_inside(o->pid, tids[i]);
		if (!*found)
			tids[0] = UINT32_MAX; /* nobody */
	}
	return fg_stat_transfer(t, t->table + offsetof(struct fg_trace, thread), tids, sizeof(tids),
				true);
}

/* ---- the table ------------------------------------------------------------------ */

static int check(struct fg_stat_target *t, const struct fg_stat_options *o,
		 const struct fg_trace *table)
{
	uint32_t tids[FG_TRACE_THREADS];
	unsigned n;

	if (table->magic != FG_TRACE_MAGIC || table->abi != FG_TRACE_ABI ||
	    table->entries != FG_TRACE_ENTRIES) {
		fg_error("the library in process %d is of another version: start the process "
			 "again",
			 (int)t->pid);
		return FG_EXIT_OWN;
	}
	if (table->until_ns > now_there(t)) {
		fg_error("another flexguard stat looks at process %d: wait for its end",
			 (int)t->pid);
		return FG_EXIT_OWN;
	}
	if (o->by == FG_STAT_BY_STACK && !table->stacks) {
		fg_error("no stacks on this architecture: take --by caller");
		return FG_EXIT_OWN;
	}
	n = o->thread ? find_threads(o, tids) : 1;
	if (!n)
		fg_error("no thread of process %d is called '%s': /proc/%d/task has their "
			 "numbers, and the names in comm",
			 (int)t->pid, o->thread, (int)t->pid);
	else if (n > FG_TRACE_THREADS)
		fg_error("%u threads are called '%s', and %u can be told apart: give a "
			 "number",
			 n, o->thread, FG_TRACE_THREADS);
	return n && n <= FG_TRACE_THREADS ? 0 : FG_EXIT_OWN;
}

static int empty(struct fg_stat_target *t, struct fg_trace *table)
{
	static struct fg_trace_stacks none;
	bool used = table->lost;

	for (size_t i = 0; i < FG_TRACE_ENTRIES && !used; i++)
		used = table->entry[i].caller;
	if (!used)
		return 0;
	table->lost = 0;
	table->until_ns = table->period_ns = 0;
	memset(table->entry, 0, sizeof(table->entry));
	if (table->stacks)
		fg_stat_transfer(t, (uint64_t)(uintptr_t)table->stacks, &none,
				 offsetof(struct fg_trace_stacks, stack), true);
	return fg_stat_transfer(t, t->table, table, sizeof(*table), true);
}

int fg_stat_prepare(struct fg_stat_target *t, const struct fg_stat_options *o,
		    struct fg_trace *table)
{
	int err = fg_stat_transfer(t, t->table, table, sizeof(*table), false), status;
	unsigned found;

	if (err) {
		fg_error("cannot read process %d: %s", (int)t->pid, reason(err));
		return FG_EXIT_OWN;
	}
	status = check(t, o, table);
	if (status)
		return status;
	err = empty(t, table);
	if (!err)
		err = choose_threads(t, o, &found);
	if (!err)
		err = SET(t, period_ns, o->by == FG_STAT_BY_STACK ? PERIOD_NS : 0);
	if (!err)
		err = SET(t, until_ns, now_there(t) + LEASE_NS);
	if (err)
		fg_error("cannot write to process %d: %s", (int)t->pid, reason(err));
	return err ? FG_EXIT_OWN : 0;
}

static bool renew(struct fg_stat_target *t, const struct fg_stat_options *o, struct fg_trace *copy)
{
	unsigned found;

	return !SET(t, until_ns, now_there(t) + LEASE_NS) &&
	       (!o->thread || !choose_threads(t, o, &found)) &&
	       !fg_stat_transfer(t, t->table, copy, sizeof(*copy), false);
}

bool fg_stat_watch(struct fg_stat_target *t, const struct fg_stat_options *o,
		   struct fg_trace *table, struct fg_stacks *stacks)
{
	uint64_t start = fg_now_ns(), end = o->for_ns ? start + o->for_ns : UINT64_MAX,
		 renewed = start, period = PERIOD_NS;
	static struct fg_trace copy;
	bool gone = false;

	while (!fg_interrupted && !gone && fg_now_ns() < end) {
		uint64_t left = end - fg_now_ns(), step = stacks ? FETCH_NS : RENEW_NS;
		struct timespec ts = {0};

		ts.tv_nsec = (long)(left < step ? left : step);
		nanosleep(&ts, NULL);
		if (stacks && fg_stacks_take(stacks, t, table) && period < PERIOD_MAX_NS) {
			period *= 2;
			SET(t, period_ns, period);
		}
		if (stacks && fg_now_ns() - renewed < RENEW_NS)
			continue;
		renewed = fg_now_ns();
		gone = !renew(t, o, &copy);
		if (!gone)
			memcpy(table, &copy, sizeof(copy));
	}
	SET(t, until_ns, 0);
	SET(t, period_ns, 0);
	if (stacks)
		fg_stacks_take(stacks, t, table);
	if (!gone && !fg_stat_transfer(t, t->table, &copy, sizeof(copy), false))
		memcpy(table, &copy, sizeof(copy));
	return gone;
}
