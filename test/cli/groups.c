/* SPDX-License-Identifier: MIT */
/*
 * flexguard metrics --by: programs of one user, however many names they take, do not use up the
 * groups of others.  What has no group of its own is in one of the user's, or in one of all users',
 * nothing is lost, and no series is told twice.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/metrics.h"

#define OTHERS "(all others together)"

static void fail(const char *what, const char *text)
{
	printf("failed: %s:\n%s\n", what, text);
	exit(1);
}

/* In place of common/query.c's: a program for each pid. */
void fg_client_name(const struct fg_answer *a, const struct fg_report_process *p, char *name,
		    size_t size)
{
	(void)a;
	snprintf(name, size, "p%d", p->pid);
}

/* So many programs of these users, all at once; pids from `pid` on, as many for each. */
static char *told(int by, uint32_t uid, uint32_t users, int pid, int each)
{
	struct fg_answer a = {.count = (size_t)each * users};
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	a.process = calloc(a.count, sizeof(*a.process));
	for (size_t i = 0; i < a.count; i++) {
		a.process[i].pid = pid + (int)i;
		a.process[i].uid = uid + (uint32_t)(i / (size_t)each);
	}
	fg_groups_print(f, &a, by);
	fclose(f);
	free(a.process);
	return text;
}

/* The value of processes{labels}, -1: not told; more than once is wrong. */
static long of(const char *text, const char *labels)
{
	char line[160];
	const char *at;

	snprintf(line, sizeof(line), "\nflexguard_group_processes{%s} ", labels);
	at = strstr(text, line);
	if (!at)
		return -1;
	if (strstr(at + 1, line))
		fail(labels, "told twice");
	return atol(at + strlen(line));
}

static void want(const char *text, const char *labels, long processes)
{
	char what[200];

	snprintf(what, sizeof(what), "%s: %ld, not %ld", labels, of(text, labels), processes);
	if (of(text, labels) != processes)
		fail(what, text);
}

static void both_labels(void)
{
	const int by = FG_GROUP_UID | FG_GROUP_PROGRAM;
	char *text = told(by, 7, 1, 1000, 300);

	want(text, "uid=\"7\",program=\"p1063\"", 1);
	want(text, "uid=\"7\",program=\"p1064\"", -1);
	want(text, "uid=\"7\",program=\"" OTHERS "\"", 236);
	free(text);
	/* Another user has groups, and others, of its own; what was counted stays where it was. */
	text = told(by, 8, 1, 2000, 65);
	want(text, "uid=\"8\",program=\"p2000\"", 1);
	want(text, "uid=\"8\",program=\"p2063\"", 1);
	want(text, "uid=\"8\",program=\"" OTHERS "\"", 1);
	want(text, "uid=\"7\",program=\"" OTHERS "\"", 0);
	free(text);
	/* 130 are taken. */
	text = told(by, 100, 1000, 10000, 1);
	want(text, "uid=\"993\",program=\"p10893\"", 1);
	want(text, "uid=\"994\",program=\"p10894\"", -1);
	want(text, "uid=\"" OTHERS "\",program=\"" OTHERS "\"", 106);
	want(text, "uid=\"8\",program=\"p2000\"", 0);
	free(text);
}

static void programs_alone(void)
{
	char *text = told(FG_GROUP_PROGRAM, 7, 1, 1000, 300);

	want(text, "program=\"p1063\"", 1);
	want(text, "program=\"" OTHERS "\"", 236);
	want(text, "program=\"\"", -1); /* a group that nobody is in yet */
	free(text);
	text = told(FG_GROUP_PROGRAM, 8, 1, 2000, 65);
	want(text, "program=\"p2000\"", 1);
	want(text, "program=\"" OTHERS "\"", 1);
	free(text);
	text = told(FG_GROUP_PROGRAM, 100, 1000, 10000, 1);
	want(text, "program=\"" OTHERS "\"", 104);
	free(text);
}

static void users_alone(void)
{
	char *text = told(FG_GROUP_UID, 100, 2000, 1000, 2);

	want(text, "uid=\"100\"", 2);
	want(text, "uid=\"1123\"", 2);
	want(text, "uid=\"1124\"", -1);
	want(text, "uid=\"" OTHERS "\"", 1952);
	free(text);
}

int main(int argc, char **argv)
{
	static void (*const kinds[])(void) = {both_labels, programs_alone, users_alone};

	if (argc != 2)
		return 2;
	kinds[atoi(argv[1])](); /* a process has one kind of labels */
	return 0;
}
