/* SPDX-License-Identifier: MIT */
/* What `flexguard top` shows: rates from two answers of the monitor. */
#include "cli/commands/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const fg_top_key_name[] = {"contended", "parks",   "preempted",
				       "blocked",   "threads", "pid"};

static int by_pid(const void *a, const void *b)
{
	const struct fg_report_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static double value(const struct fg_top_row *r, enum fg_top_key key)
{
	switch (key) {
	case FG_TOP_CONTENDED: return r->contended;
	case FG_TOP_PARKS: return r->parks;
	case FG_TOP_PREEMPTIONS: return r->preemptions;
	case FG_TOP_BLOCKED: return r->blocked;
	case FG_TOP_THREADS: return r->threads;
	case FG_TOP_PID: return -r->pid; /* the lowest first */
	}
	return 0;
}

static int by_key(const void *a, const void *b, void *top)
{
	const struct fg_top *t = top;
	const struct fg_top_row *x = a, *y = b;
	double vx = value(x, t->key), vy = value(y, t->key);

	if (vx == vy)
		return (x->pid > y->pid) - (x->pid < y->pid);
	return (vx < vy) != t->reverse ? 1 : -1;
}

void fg_top_sort(struct fg_top *t)
{
	qsort_r(t->row, t->rows, sizeof(*t->row), by_key, t);
}

/* Of this process and no earlier one with its pid. */
static const struct fg_report_process *before(const struct fg_answer *last,
					      const struct fg_report_process *p)
{
	const struct fg_report_process *was = last->count ? bsearch(p, last->process, last->count,
								    sizeof(*p), by_pid) :
							    NULL;

	return was && was->since_ns == p->since_ns ? was : NULL;
}

/*
 * What has been counted since the last answer, or since the process registered, is spread over that
 * time.
 */
static void make_row(struct fg_top_row *r, const struct fg_report_process *p,
		     const struct fg_answer *last, const struct fg_answer *now)
{
	const struct fg_report_process *was = before(last, p);
	double s = (double)(now->sum.up_ns - (was ? last->sum.up_ns : p->since_ns)) / 1e9;
	double rate[FG_SLOT_STATS];

	for (int i = 0; i < FG_SLOT_STATS; i++)
		rate[i] = s > 0 ? (double)(p->stats[i] - (was ? was->stats[i] : 0)) / s : 0;
	r->pid = p->pid;
	r->threads = p->threads;
	r->runnable = p->runnable;
	fg_user_name(p->uid, r->user, sizeof(r->user));
	fg_client_name(now, p, r->program, sizeof(r->program));
	r->contended = rate[FG_SLOT_CONTENDED];
	r->spun = rate[FG_SLOT_SPUN];
	r->parks = rate[FG_SLOT_PARKS];
	r->preemptions = rate[FG_SLOT_PREEMPTIONS];
	r->blocked = rate[FG_SLOT_BLOCKED_NS] / 1e9;
}

int fg_top_sample(struct fg_top *t, char *why, size_t size)
{
	struct fg_top_row *row;
	struct fg_answer a;
	int err = fg_query(t->socket, &a, why, size);
	bool same;

	if (err)
		return err;
	err = t->kernel ? fg_top_kernel_sample(t->kernel, why, size) : 0;
	if (err) {
		fg_answer_free(&a);
		return err;
	}
	qsort(a.process, a.count, sizeof(*a.process), by_pid);
	row = realloc(t->row, (a.count + 1) * sizeof(*row));
	if (!row) {
		fg_answer_free(&a);
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	t->row = row;
	/* not a monitor that was started since */
	same = t->last.sum.generation == a.sum.generation;
	if (!same)
		fg_answer_free(&t->last);
	t->between_ns = a.sum.up_ns - (same ? t->last.sum.up_ns : 0);
	t->preempted = t->between_ns ? (double)(a.sum.total_preempted -
						(same ? t->last.sum.total_preempted : 0)) *
					   1e9 / (double)t->between_ns :
				       0;
	for (size_t i = 0; i < a.count; i++) {
		make_row(&row[i], &a.process[i], &t->last, &a);
		row[i].kernel = t->kernel ? fg_top_kernel_waiting(t->kernel, row[i].pid) : 0;
	}
	t->rows = a.count;
	t->monitored = a.sum.processes;
	t->hidden = a.sum.processes > a.count ? a.sum.processes - a.count : 0;
	t->cost_ns = a.sum.cost_samples ? (double)a.sum.cost_ns / (double)a.sum.cost_samples : 0;
	snprintf(t->version, sizeof(t->version), "%s", a.sum.version);
	fg_answer_free(&t->last);
	t->last = a;
	fg_top_sort(t);
	return 0;
}
