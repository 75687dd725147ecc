/* SPDX-License-Identifier: MIT */
/*
 * Metrics with labels: by user, by program, or by both.  The monitor knows what each registered
 * process has counted, and forgets a process that ends; Prometheus wants counts that only grow.  So
 * what each has counted since the last time is added to its group, which stays.  What a process
 * counts after the last time before its end is in the sums without labels only.
 */
#include "cli/commands/metrics.h"

#include <stdlib.h>
#include <string.h>

/*
 * A program may call itself anything, so a user could make any number of labels, each of which a
 * server of Prometheus keeps.  What a user's programs are the first of beyond so many is one group
 * of the user's; beyond so many of all users (of user namespaces, one has many thousand), one in
 * all.  Not varied.
 */
#define MAX_OF_USER 64
#define MAX_GROUPS  1024
/* Longer than the kernel lets a program's name be: one series of the same labels would be two. */
#define THE_OTHERS "(all others together)"

struct group {
	uint32_t uid;
	char program[32];
	uint32_t first;		     /* the user whose program was the first */
	uint32_t processes, threads; /* now */
	__u64 stats[FG_SLOT_STATS];
};

static struct group group[MAX_GROUPS + 1]; /* the last one: the others of all users */
static size_t groups;

/* As of the last time, sorted. */
static struct fg_report_process *known;
static size_t nr_known;

const struct fg_lock_metric fg_lock_metric[FG_LOCK_METRICS] = {
    {"contended_total", "Acquisitions that found the lock held.", FG_SLOT_CONTENDED, 1},
    {"spun_total", "Of these, got while spinning.", FG_SLOT_SPUN, 1},
    {"parks_total", "Times a waiter went to sleep.", FG_SLOT_PARKS, 1},
    {"wakeups_total", "Wake-up calls by a releaser.", FG_SLOT_WAKEUPS, 1},
    {"holder_preemptions_total", "Times a waiter saw the critical path off its CPU.",
     FG_SLOT_PREEMPTIONS, 1},
    {"blocking_seconds_total", "Time of all threads in blocking mode.", FG_SLOT_BLOCKED_NS, 1e9},
    {"cond_waits_total", "Condition variable waits that slept.", FG_SLOT_COND_WAITS, 1},
};

int fg_groups_by(const char *text)
{
	if (!strcmp(text, "uid"))
		return FG_GROUP_UID;
	if (!strcmp(text, "program"))
		return FG_GROUP_PROGRAM;
	if (!strcmp(text, "uid,program") || !strcmp(text, "program,uid"))
		return FG_GROUP_UID | FG_GROUP_PROGRAM;
	return 0;
}

/* A pid is used again, but not with the same time of registration. */
static int by_identity(const void *a, const void *b)
{
	const struct fg_report_process *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns;
}

/*
 * ASCII, since the text format wants UTF-8 and a name may be anything.  Made so before names are
 * compared: two that look the same then would be one series twice, and the answer is refused whole.
 */
static void name_of(const struct fg_answer *a, const struct fg_report_process *p, char *name,
		    size_t size)
{
	fg_client_name(a, p, name, size);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
}

static struct group *group_of(const struct fg_answer *a, const struct fg_report_process *p, int by)
{
	struct group key = {.uid = by & FG_GROUP_UID ? p->uid : 0, .first = p->uid};
	struct group *others = NULL; /* of the user */
	size_t of_user = 0;

	if (by & FG_GROUP_PROGRAM)
		name_of(a, p, key.program, sizeof(key.program));
	for (size_t i = 0; i < groups; i++) {
		of_user += group[i].first == p->uid;
		if (group[i].uid != key.uid)
			continue;
		if (!strcmp(group[i].program, key.program))
			return &group[i];
		if (!strcmp(group[i].program, THE_OTHERS))
			others = &group[i];
	}
	if (of_user >= MAX_OF_USER && others)
		return others;
	/* Without its number in a label, a user's others are the same series as all users'. */
	if (groups == MAX_GROUPS || (of_user >= MAX_OF_USER && !(by & FG_GROUP_UID))) {
		strcpy(group[MAX_GROUPS].program, THE_OTHERS);
		return &group[MAX_GROUPS];
	}
	if (of_user >= MAX_OF_USER)
		strcpy(key.program, THE_OTHERS);
	group[groups] = key;
	return &group[groups++];
}

/* What a process has counted since; a count that falls is a program's lie, and adds nothing. */
static void add(struct group *g, const struct fg_report_process *now,
		const struct fg_report_process *before)
{
	g->processes++;
	g->threads += now->threads;
	for (int s = 0; s < FG_SLOT_STATS; s++) {
		uint64_t had = before ? before->stats[s] : 0;

		if (now->stats[s] > had)
			fg_add_count(&g->stats[s], now->stats[s] - had);
	}
}

static void update(struct fg_answer *a, int by)
{
	struct fg_report_process *copy;
	size_t k = 0;

	for (size_t i = 0; i <= MAX_GROUPS; i++)
		group[i].processes = group[i].threads = 0;
	qsort(a->process, a->count, sizeof(*a->process), by_identity);
	for (size_t i = 0; i < a->count; i++) {
		int order = 1;

		while (k < nr_known && (order = by_identity(&known[k], &a->process[i])) < 0)
			k++;
		add(group_of(a, &a->process[i], by), &a->process[i],
		    k < nr_known && !order ? &known[k] : NULL);
	}
	copy = realloc(known, (a->count + 1) * sizeof(*known));
	if (!copy)
		return; /* then some of it is counted twice */
	known = copy;
	memcpy(known, a->process, a->count * sizeof(*known));
	nr_known = a->count;
}

static void print_quoted(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		putc(*text, f);
	}
	putc('"', f);
}

static void print_value(FILE *f, const char *name, const struct group *g, int by, double value)
{
	fprintf(f, "flexguard_group_%s{", name);
	if (by & FG_GROUP_UID) {
		if (g == &group[MAX_GROUPS])
			fputs("uid=\"" THE_OTHERS "\"", f);
		else
			fprintf(f, "uid=\"%u\"", g->uid);
	}
	if (by & FG_GROUP_PROGRAM) {
		fprintf(f, "%sprogram=", by & FG_GROUP_UID ? "," : "");
		print_quoted(f, g->program);
	}
	fprintf(f, "} %.15g\n", value);
}

static void print_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP flexguard_group_%s %s\n# TYPE flexguard_group_%s %s\n", name, help, name,
		type);
}

/* Of those that are told: the one for the others comes last, wherever it is. */
static const struct group *told(size_t i)
{
	return &group[i < groups ? i : MAX_GROUPS];
}

void fg_groups_print(FILE *f, struct fg_answer *a, int by)
{
	size_t n;

	update(a, by);
	n = groups + !!*group[MAX_GROUPS].program;
	print_head(f, "processes", "gauge", "Registered processes, by group.");
	for (size_t i = 0; i < n; i++)
		print_value(f, "processes", told(i), by, told(i)->processes);
	print_head(f, "threads", "gauge", "Their threads that take locks.");
	for (size_t i = 0; i < n; i++)
		print_value(f, "threads", told(i), by, told(i)->threads);
	for (size_t m = 0; m < FG_LOCK_METRICS; m++) {
		const struct fg_lock_metric *metric = &fg_lock_metric[m];

		print_head(f, metric->name, "counter", metric->help);
		for (size_t i = 0; i < n; i++)
			print_value(f, metric->name, told(i), by,
				    (double)told(i)->stats[metric->stat] / metric->unit);
	}
}
