/* SPDX-License-Identifier: MIT */
/* `flexguard status`: the monitor, and its clients by program and user. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
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

struct group {
	char program[32];
	uint32_t uid;
	uint32_t processes, threads;
	__u64 stats[FG_SLOT_STATS];
};

static int by_threads(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? 1 : -1;
	return strcmp(x->program, y->program);
}

static size_t group_clients(const struct fg_answer *a, struct group *group)
{
	size_t n = 0, k;

	for (size_t i = 0; i < a->count; i++) {
		const struct fg_report_process *p = &a->process[i];
		char name[32];

		fg_client_name(a, p, name, sizeof(name));
		for (k = 0; k < n && (group[k].uid != p->uid || strcmp(group[k].program, name));
		     k++)
			;
		if (k == n) {
			memset(&group[n], 0, sizeof(group[n]));
			strcpy(group[n].program, name);
			group[n++].uid = p->uid;
		}
		group[k].processes++;
		group[k].threads += p->threads;
		for (int s = 0; s < FG_SLOT_STATS; s++)
			fg_add_count(&group[k].stats[s], p->stats[s]);
	}
	qsort(group, n, sizeof(*group), by_threads);
	return n;
}

/* "3 d 4 h", "5 min 12 s" */
static const char *age_of(uint64_t ns, char *text, size_t size)
{
	static const struct {
		uint64_t s;
		const char *name;
	} unit[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	uint64_t s = ns / 1000000000u;
	int shown = 0;
	size_t len = 0;

	for (size_t i = 0; i < 4 && shown < 2; i++)
		if (s >= unit[i].s || shown || i == 3) {
			len += (size_t)snprintf(text + len, size - len, "%s%llu %s",
						shown ? " " : "",
						(unsigned long long)(s / unit[i].s), unit[i].name);
			s %= unit[i].s;
			shown++;
		}
	return text;
}

static double cost_of(const struct fg_report *r)
{
	return r->cost_samples ? (double)r->cost_ns / (double)r->cost_samples : 0;
}

static void put_field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "name       text", folded to the terminal. */
static void put_field(const char *name, const char *fmt, ...)
{
	char text[500], folded[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fg_fold(folded, sizeof(folded), text, 11, 11, fg_prose_columns(STDOUT_FILENO));
	printf("%-9s  %s\n", name, folded);
}

/* NULL: the kernel has not refused it, or the answer is none. */
static const char *why_unattached(const struct fg_report *r)
{
	return r->unattached < 0 && r->unattached > -4096 ? strerror(-r->unattached) : NULL;
}

/* Of other users, about which the monitor says nothing. */
static unsigned long long hidden(const struct fg_answer *a)
{
	return a->sum.processes > a->count ? a->sum.processes - a->count : 0;
}

static void print_monitor(const struct fg_answer *a, const char *path, const char *kernel)
{
	const struct fg_report *r = &a->sum;
	char user[64], age[40], c1[24], c2[24];

	fg_user_name(r->uid, user, sizeof(user));
	put_field("monitor", "%s at %s, user %s, up %s", r->version, path, user,
		  age_of(r->up_ns, age, sizeof(age)));
	put_field("kernel", "Linux %s", kernel);
	put_field("processes",
		  "%llu of %llu at most; %llu registered since the start, %llu refused, %llu "
		  "dropped",
		  r->processes, r->max_processes, r->registered, r->refused, r->dropped);
	put_field("critical", "%llu off CPU now, %llu asleep", r->preempted, r->blocked);
	put_field("events", "%s preempted while critical, %s asleep; %llu missed",
		  fg_human_count(c1, sizeof(c1), (double)r->total_preempted),
		  fg_human_count(c2, sizeof(c2), (double)r->total_blocked), r->missed);
	if (r->cost_samples)
		put_field("cost", "%.0f ns a context switch (%s timed)", cost_of(r),
			  fg_human_count(c1, sizeof(c1), (double)r->cost_samples));
	else
		put_field("cost", "not known yet: one switch of %d is timed", FG_COST_EVERY);
	if (why_unattached(r))
		put_field("fallback",
			  "the kernel did not attach the eBPF programs again when it was asked "
			  "last: %s: who comes runs on the fallback until it does",
			  why_unattached(r));
	if (hidden(a))
		put_field("not shown", "%llu process%s of other users: root sees all", hidden(a),
			  hidden(a) == 1 ? "" : "es");
}

static void print_clients(const struct group *g, size_t n)
{
	char user[64], c1[24], c2[24];
	int width = 7;

	for (size_t i = 0; i < n; i++) {
		fg_user_name(g[i].uid, user, sizeof(user));
		width = (int)strlen(user) > width ? (int)strlen(user) : width;
	}
	putchar('\n');
	fg_put_row("%-*s  %9s  %7s  %9s  %9s  %s", width, "USER", "PROCESSES", "THREADS",
		   "CONTENDED", "PREEMPTED", "PROGRAM");
	for (size_t i = 0; i < n; i++) {
		fg_user_name(g[i].uid, user, sizeof(user));
		fg_put_row("%-*s  %9u  %7u  %9s  %9s  %s", width, user, g[i].processes,
			   g[i].threads,
			   fg_human_count(c1, sizeof(c1), (double)g[i].stats[FG_SLOT_CONTENDED]),
			   fg_human_count(c2, sizeof(c2), (double)g[i].stats[FG_SLOT_PREEMPTIONS]),
			   g[i].program);
	}
}

static void print_json(const struct fg_answer *a, const struct group *g, size_t n, const char *path,
		       const char *kernel)
{
	const struct fg_report *r = &a->sum;
	struct fg_json j = {.f = stdout};

	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "version", r->version);
	fg_json_text(&j, "socket", path);
	fg_json_count(&j, "uid", r->uid);
	fg_json_real(&j, "uptime_seconds", 3, (double)r->up_ns / 1e9);
	fg_json_text(&j, "kernel", kernel);
	fg_json_count(&j, "hidden_processes", hidden(a));
	fg_json_count(&j, "processes", r->processes);
	fg_json_count(&j, "max_processes", r->max_processes);
	fg_json_count(&j, "registered", r->registered);
	fg_json_count(&j, "refused", r->refused);
	fg_json_count(&j, "dropped", r->dropped);
	fg_json_open(&j, "counters", '{');
	fg_json_count(&j, "preempted", r->preempted);
	fg_json_count(&j, "asleep", r->blocked);
	fg_json_count(&j, "preempted_total", r->total_preempted);
	fg_json_count(&j, "asleep_total", r->total_blocked);
	fg_json_close(&j, '}');
	fg_json_text(&j, "attach_error", why_unattached(r));
	fg_json_count(&j, "missed_events", r->missed);
	fg_json_real(&j, "switch_cost_ns", 1, r->cost_samples ? cost_of(r) : NAN);
	fg_json_count(&j, "switches_timed", r->cost_samples);
	fg_json_slot_stats(&j, r->stats);
	fg_json_open(&j, "clients", '[');
	for (size_t i = 0; i < n; i++) {
		fg_json_open(&j, NULL, '{');
		fg_json_text(&j, "program", g[i].program);
		fg_json_count(&j, "uid", g[i].uid);
		fg_json_count(&j, "processes", g[i].processes);
		fg_json_count(&j, "threads", g[i].threads);
		fg_json_slot_stats(&j, g[i].stats);
		fg_json_close(&j, '}');
	}
	fg_json_close(&j, ']');
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

int fg_cmd_status(int argc, char **argv)
{
	struct fg_arguments args = fg_arguments(argc, argv);
	const char *path = fg_socket_path();
	struct fg_answer a;
	struct utsname os;
	struct group *g;
	bool json = false;
	char why[300];
	int option;
	size_t n;

	while ((option = fg_arguments_next(&args)) >= 0)
		if (option == FG_STATUS_JSON)
			json = true;
		else if (!fg_socket_option(&args, &path))
			return FG_EXIT_OWN;
	if (option == FG_ARGUMENTS_EXIT)
		return args.status;
	if (!fg_arguments_no_more(&args))
		return FG_EXIT_OWN;
	if (fg_query(path, &a, why, sizeof(why))) {
		fg_error("%s", why);
		return FG_EXIT_OWN;
	}
	g = calloc(a.count + 1, sizeof(*g));
	if (!g || uname(&os)) {
		fg_error("out of memory");
		return FG_EXIT_OWN;
	}
	n = group_clients(&a, g);
	if (json) {
		print_json(&a, g, n, path, os.release);
	} else {
		print_monitor(&a, path, os.release);
		if (n)
			print_clients(g, n);
	}
	free(g);
	fg_answer_free(&a);
	return 0;
}
