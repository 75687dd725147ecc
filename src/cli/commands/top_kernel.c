/* SPDX-License-Identifier: MIT */
/* `flexguard top --kernel`: rates of waits for the kernel's own locks, by lock and by process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel.h"
#include "cli/commands/top.h"
#include "cli/common/units.h"
#include "monitor/clock.h"
#include "monitor/contention.h"

struct process {
	uint32_t pid;
	double waiting;
};

struct fg_top_kernel {
	struct fg_contention *c;
	struct fg_kernel_names *names;
	uint64_t at_ns, lost_before; /* lost_before: by programs that were closed since */
	struct fg_waits lock_was[FG_LOCK_ROWS], waiter_was[FG_WAITER_ROWS];
	struct fg_top_lock lock[FG_LOCK_ROWS];
	struct process process[FG_WAITER_ROWS]; /* by pid */
	size_t locks, processes;
	double waits, waiting;
	uint64_t lost;
};

static int start(struct fg_top_kernel *k, char *why, size_t size)
{
	int err;

	k->names = fg_kernel_names_open();
	if (!k->names) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	err = fg_contention_open(&k->c, &(struct fg_contention_config){.by = FG_BY_TASK}, why,
				 size);
	if (err)
		return err;
	memset(k->lock_was, 0, sizeof(k->lock_was));
	memset(k->waiter_was, 0, sizeof(k->waiter_was));
	k->at_ns = fg_now_ns();
	return 0;
}

static void stop(struct fg_top_kernel *k)
{
	if (k->c)
		fg_contention_close(k->c);
	fg_kernel_names_close(k->names);
	k->c = NULL;
	k->names = NULL;
}

int fg_top_kernel_open(struct fg_top_kernel **out, char *why, size_t size)
{
	struct fg_top_kernel *k;
	int err = fg_contention_preflight(why, size);

	*out = NULL;
	if (err)
		return err;
	k = calloc(1, sizeof(*k));
	if (!k)
		snprintf(why, size, "out of memory");
	err = k ? start(k, why, size) : -ENOMEM;
	if (err)
		fg_top_kernel_close(k);
	else
		*out = k;
	return err;
}

void fg_top_kernel_close(struct fg_top_kernel *k)
{
	if (k)
		stop(k);
	free(k);
}

/* Since the last time, which becomes now. */
static struct fg_waits since(struct fg_waits *was, const struct fg_waits *now)
{
	struct fg_waits n = *now, d = {.waits = n.waits + n.failed - was->waits - was->failed,
				       .wait_ns = n.wait_ns - was->wait_ns};

	*was = n;
	return d;
}

static int by_waiting(const void *a, const void *b)
{
	const struct fg_top_lock *x = a, *y = b;

	return (x->waiting < y->waiting) - (x->waiting > y->waiting);
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void look_at_locks(struct fg_top_kernel *k, const struct fg_contention_view *v, double s)
{
	k->waits = k->waiting = 0;
	k->locks = 0;
	for (size_t i = 0; i < FG_LOCK_ROWS; i++) {
		const struct fg_contended_lock *l = &v->locks[i];
		struct fg_top_lock *r = &k->lock[k->locks];
		struct fg_waits d = since(&k->lock_was[i], &l->w);

		if (!d.waits || l->class >= FG_CLASSES)
			continue;
		*r = (struct fg_top_lock){.type = fg_lock_class_name[l->class],
					  .waits = (double)d.waits / s,
					  .waiting = (double)d.wait_ns / 1e9 / s,
					  .average_ns = (double)d.wait_ns / (double)d.waits};
		fg_kernel_name_lock(k->names, v, i, r->name, sizeof(r->name));
		k->waits += r->waits;
		k->waiting += r->waiting;
		k->locks++;
	}
	qsort(k->lock, k->locks, sizeof(*k->lock), by_waiting);
}

static void look_at_processes(struct fg_top_kernel *k, const struct fg_contention_view *v, double s)
{
	size_t n = 0;

	k->processes = 0;
	for (size_t i = 0; i < FG_WAITER_ROWS; i++) {
		struct fg_waits d = since(&k->waiter_was[i], &v->waiters[i].w);

		if (d.waits)
			k->process[n++] = (struct process){v->waiters[i].tgid,
							   (double)d.wait_ns / 1e9 / s};
	}
	qsort(k->process, n, sizeof(*k->process), by_pid);
	for (size_t i = 0; i < n; i++)
		if (k->processes && k->process[k->processes - 1].pid == k->process[i].pid)
			k->process[k->processes - 1].waiting += k->process[i].waiting;
		else
			k->process[k->processes++] = k->process[i];
}

int fg_top_kernel_sample(struct fg_top_kernel *k, char *why, size_t size)
{
	const struct fg_contention_view *v = fg_contention_view(k->c);
	const struct fg_contention_counts *n = v->counts;
	uint64_t now = fg_now_ns(), full = n->full_locks + n->full_waiters + n->full_waiting;
	double s = (double)(now - k->at_ns) / 1e9;

	fg_kernel_names_learn(k->names, k->c);
	k->at_ns = now;
	k->lost = k->lost_before + full + n->nested;
	look_at_locks(k, v, s > 0 ? s : 1);
	look_at_processes(k, v, s > 0 ? s : 1);
	if (!full)
		return 0;
	/* The tables do not forget threads that have ended: begin anew. */
	k->lost_before = k->lost;
	stop(k);
	return start(k, why, size);
}

double fg_top_kernel_waiting(const struct fg_top_kernel *k, int pid)
{
	const struct process *p = bsearch(&(struct process){.pid = (uint32_t)pid}, k->process,
					  k->processes, sizeof(*p), by_pid);

	return p ? p->waiting : 0;
}

size_t fg_top_kernel_locks(const struct fg_top_kernel *k, const struct fg_top_lock **lock)
{
	*lock = k->lock;
	return k->locks;
}

void fg_top_kernel_summary(const struct fg_top_kernel *k, char *text, size_t size)
{
	char n[24];

	snprintf(text, size, "the kernel's locks: %s waits/s, %.2f threads waiting",
		 fg_human_count(n, sizeof(n), k->waits), k->waiting);
	if (k->lost)
		snprintf(text + strlen(text), size - strlen(text), "; %llu events lost",
			 (unsigned long long)k->lost);
}

void fg_top_kernel_header(char *text, size_t size)
{
	snprintf(text, size, "%9s %9s %9s %-9s %s", "WAITS/s", "WAITING", "AVERAGE", "TYPE",
		 "KERNEL LOCK");
}

void fg_top_kernel_line(const struct fg_top_lock *l, char *text, size_t size)
{
	char n[2][24];

	snprintf(text, size, "%9s %9.4f %9s %-9s %s", fg_human_count(n[0], sizeof(n[0]), l->waits),
		 l->waiting, fg_human_ns(n[1], sizeof(n[1]), l->average_ns), l->type, l->name);
}

void fg_top_kernel_json(const struct fg_top_kernel *k, struct fg_json *j)
{
	fg_json_open(j, "kernel", '{');
	fg_json_real(j, "waits_per_second", 1, k->waits);
	fg_json_real(j, "waiting_threads", 4, k->waiting);
	fg_json_count(j, "lost", k->lost);
	fg_json_open(j, "locks", '[');
	for (size_t i = 0; i < k->locks; i++) {
		const struct fg_top_lock *l = &k->lock[i];

		fg_json_open(j, NULL, '{');
		fg_json_text(j, "lock", l->name);
		fg_json_text(j, "type", l->type);
		fg_json_real(j, "waits_per_second", 1, l->waits);
		fg_json_real(j, "waiting_threads", 4, l->waiting);
		fg_json_real(j, "avg_wait_ns", 0, l->average_ns);
		fg_json_close(j, '}');
	}
	fg_json_close(j, ']');
	fg_json_close(j, '}');
}
