/* SPDX-License-Identifier: MIT */
/* `flexguard top`: lines of text, for its screen and for batch mode. */
#include "cli/commands/top.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/common/units.h"

void fg_top_summary(const struct fg_top *t, int line, char *text, size_t size)
{
	time_t now = time(NULL);
	char clock[16], n[24];
	struct tm tm;

	if (line == 0) {
		strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
		snprintf(text, size,
			 "flexguard top - %s, monitor %s, %llu process%s, sorted by %s%s", clock,
			 t->version, t->monitored, t->monitored == 1 ? "" : "es",
			 fg_top_key_name[t->key], t->reverse ? ", reversed" : "");
		return;
	}
	snprintf(text, size, "owners and heads of queues preempted: %s/s; the monitor: ",
		 fg_human_count(n, sizeof(n), t->preempted));
	if (t->cost_ns > 0)
		snprintf(text + strlen(text), size - strlen(text), "%.0f ns a context switch",
			 t->cost_ns);
	else
		snprintf(text + strlen(text), size - strlen(text), "cost not known yet");
}

void fg_top_hidden(const struct fg_top *t, char *text, size_t size)
{
	*text = '\0';
	if (t->hidden)
		snprintf(text, size, "%llu process%s of other users not shown: root sees all",
			 t->hidden, t->hidden == 1 ? "" : "es");
}

void fg_top_header(const struct fg_top *t, char *text, size_t size)
{
	snprintf(text, size, "%7s %-7s %7s %11s %7s %7s %11s %7s %s%s", "PID", "USER", "RUN/THR",
		 "CONTENDED/s", "SPUN/s", "PARKS/s", "PREEMPTED/s", "BLOCKED",
		 t->kernel ? " KERNEL " : "", "PROGRAM");
}

void fg_top_line(const struct fg_top *t, const struct fg_top_row *r, char *text, size_t size)
{
	char c[4][24], threads[24], kernel[16] = "";

	if (t->kernel)
		snprintf(kernel, sizeof(kernel), "%7.2f ", r->kernel);

	snprintf(threads, sizeof(threads), "%u/%u", r->runnable, r->threads);
	snprintf(text, size, "%7d %-7.7s %7s %11s %7s %7s %11s %7.2f %s%s", r->pid, r->user,
		 threads, fg_human_count(c[0], sizeof(c[0]), r->contended),
		 fg_human_count(c[1], sizeof(c[1]), r->spun),
		 fg_human_count(c[2], sizeof(c[2]), r->parks),
		 fg_human_count(c[3], sizeof(c[3]), r->preemptions), r->blocked, kernel,
		 r->program);
}
