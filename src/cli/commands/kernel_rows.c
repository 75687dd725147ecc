/* SPDX-License-Identifier: MIT */
/* `flexguard kernel profile`: the tables of bpf/contention.bpf.c as rows of what was asked for. */
#include <fnmatch.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/kernel.h"
#include "monitor/contention.h"

const char *const fg_lock_class_name[FG_CLASSES] = {
    [FG_CLASS_SEMAPHORE] = "semaphore",
    [FG_CLASS_SPIN] = "spin",
    [FG_CLASS_RWLOCK] = "rwlock",
    [FG_CLASS_MUTEX] = "mutex",
    [FG_CLASS_RWSEM] = "rwsem",
    [FG_CLASS_PERCPU_RWSEM] = "percpu",
    [FG_CLASS_RT] = "rt",
};
const char *const fg_kernel_by_name[] = {"lock", "type",   "slab",  "caller",
					 "task", "cgroup", "owner", NULL};
const char *const fg_kernel_sort_name[] = {"total", "waits", "max", "average", "across", NULL};

/* ---- names ------------------------------------------------------------------------ */

static uint64_t wanted_cgroup;
static char cgroup_path[FG_KERNEL_NAME];

static int is_cgroup(const char *path, const struct stat *st, int type, struct FTW *at)
{
	if (type != FTW_D || st->st_ino != wanted_cgroup)
		return 0;
	snprintf(cgroup_path, sizeof(cgroup_path), "%s", path + strlen("/sys/fs/cgroup"));
	return 1;
}

/* The number of a cgroup is that of its folder (cgroup v2). */
static void name_cgroup(uint64_t id, char *name, size_t size)
{
	wanted_cgroup = id;
	if (nftw("/sys/fs/cgroup", is_cgroup, 16, FTW_PHYS | FTW_MOUNT) == 1)
		snprintf(name, size, "%s", *cgroup_path ? cgroup_path : "/");
	else
		snprintf(name, size, "cgroup %" PRIu64, id);
}

static void name_waiter(const struct fg_kernel_names *names, const struct fg_kernel_options *o,
			const struct fg_contended_waiter *w, struct fg_kernel_row *r)
{
	uint64_t caller;

	switch (o->by) {
	case FG_KBY_CALLER:
		caller = fg_kernel_caller(names->symbols, w->stack);
		if (caller)
			fg_kernel_function(names->symbols, caller, r->name, sizeof(r->name));
		else
			snprintf(r->name, sizeof(r->name), "(not known)");
		snprintf(r->group, sizeof(r->group), "%s", r->name);
		break;
	case FG_KBY_CGROUP: /* named when there is one row each: a walk through the folders */
		snprintf(r->group, sizeof(r->group), "%" PRIu64, (uint64_t)w->id);
		break;
	default:
		if (o->by == FG_KBY_OWNER && !w->id)
			snprintf(r->name, sizeof(r->name), "(not told)");
		else
			snprintf(r->name, sizeof(r->name), "%.*s (%" PRIu64 ")",
				 (int)sizeof(w->comm), w->comm, (uint64_t)w->id);
		snprintf(r->group, sizeof(r->group), "%" PRIu64 " %u", (uint64_t)w->id, w->tgid);
	}
}

/* ---- filters ---------------------------------------------------------------------- */

static bool is_wanted(const struct fg_kernel_names *names, const struct fg_kernel_options *o,
		      const struct fg_contention_view *v, size_t row)
{
	const struct fg_contended_lock *l = &v->locks[row];
	char name[FG_KERNEL_NAME];

	if (!l->key || !(l->w.waits + l->w.failed) || l->class >= FG_CLASSES)
		return false;
	if (o->class >= 0 && l->class != (unsigned)o->class)
		return false;
	if (!o->lock)
		return true;
	fg_kernel_name_lock(names, v, row, name, sizeof(name));
	/* By the whole name, or without the address behind it. */
	if (!fnmatch(o->lock, name, 0))
		return true;
	name[strcspn(name, " ")] = '\0';
	return !fnmatch(o->lock, name, 0) || !fnmatch(o->lock, names->slab[row], 0);
}

/* ---- rows ------------------------------------------------------------------------- */

static void add_waits(struct fg_waits *to, const struct fg_waits *w)
{
	to->waits += w->waits;
	to->failed += w->failed;
	to->reads += w->reads;
	to->wait_ns += w->wait_ns;
	to->max_ns = w->max_ns > to->max_ns ? w->max_ns : to->max_ns;
}

static void merge(struct fg_kernel_row *to, const struct fg_kernel_row *r)
{
	if (to->waiter && r->waiter &&
	    fg_waits_count(&r->waiter->w) > fg_waits_count(&to->waiter->w))
		to->waiter = r->waiter;
	add_waits(&to->w, &r->w);
	to->class = to->class == r->class ? to->class : -1;
	to->handovers += r->handovers;
	to->across += r->across;
	to->batch = r->batch > to->batch ? r->batch : to->batch;
	to->holds += r->holds;
	to->hold_ns += r->hold_ns;
	to->hold_max_ns = r->hold_max_ns > to->hold_max_ns ? r->hold_max_ns : to->hold_max_ns;
}

static int by_group(const void *a, const void *b)
{
	const struct fg_kernel_row *x = a, *y = b;

	return strcmp(x->group, y->group);
}

static enum fg_kernel_sort sort_by;

static double rank(const struct fg_kernel_row *r)
{
	switch (sort_by) {
	case FG_KSORT_WAITS: return (double)fg_waits_count(&r->w);
	case FG_KSORT_MAX: return (double)r->w.max_ns;
	case FG_KSORT_AVERAGE: return (double)r->w.wait_ns / (double)fg_waits_count(&r->w);
	case FG_KSORT_ACROSS: return (double)r->across;
	default: return (double)r->w.wait_ns;
	}
}

static int by_rank(const void *a, const void *b)
{
	double x = rank(a), y = rank(b);

	return x != y ? (x < y) - (x > y) : by_group(a, b);
}

static struct fg_kernel_row of_lock(const struct fg_contended_lock *l)
{
	return (struct fg_kernel_row){.w = l->w,
				      .class = (int)l->class,
				      .lock = l,
				      .handovers = l->handovers,
				      .across = l->across,
				      .batch = l->batch,
				      .holds = l->holds,
				      .hold_ns = l->hold_ns,
				      .hold_max_ns = l->hold_max_ns};
}

static size_t rows_of_locks(const struct fg_contention_view *v, const struct fg_kernel_options *o,
			    const struct fg_kernel_names *names, struct fg_kernel_row *row)
{
	size_t n = 0;

	for (size_t i = 0; i < FG_LOCK_ROWS; i++) {
		const struct fg_contended_lock *l = &v->locks[i];
		struct fg_kernel_row *r = &row[n];

		if (!is_wanted(names, o, v, i))
			continue;
		*r = of_lock(l);
		snprintf(r->slab, sizeof(r->slab), "%s", names->slab[i]);
		fg_kernel_variable_at(names, v, i, r->symbol, sizeof(r->symbol));
		if (o->by == FG_KBY_LOCK) {
			fg_kernel_name_lock(names, v, i, r->name, sizeof(r->name));
			snprintf(r->group, sizeof(r->group), "%016" PRIx64, (uint64_t)l->key);
		} else if (o->by == FG_KBY_TYPE) {
			snprintf(r->name, sizeof(r->name), "%s", fg_lock_class_name[l->class]);
			snprintf(r->group, sizeof(r->group), "%s", r->name);
		} else {
			snprintf(r->name, sizeof(r->name), "%s",
				 *r->slab   ? r->slab :
				 *r->symbol ? "(static)" :
					      "(none)");
			snprintf(r->group, sizeof(r->group), "%s", r->name);
		}
		n++;
	}
	return n;
}

struct lock_at {
	uint64_t key;
	size_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct lock_at *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static size_t rows_of_waiters(const struct fg_contention_view *v, const struct fg_kernel_options *o,
			      const struct fg_kernel_names *names, struct fg_kernel_row *row)
{
	static struct lock_at lock[FG_LOCK_ROWS];
	size_t locks = 0, n = 0;

	for (size_t i = 0; i < FG_LOCK_ROWS; i++)
		if (is_wanted(names, o, v, i))
			lock[locks++] = (struct lock_at){v->locks[i].key, i};
	qsort(lock, locks, sizeof(*lock), by_key);
	for (size_t i = 0; i < FG_WAITER_ROWS; i++) {
		const struct fg_contended_waiter *w = &v->waiters[i];
		const struct lock_at *l;

		if (!w->key || !fg_waits_count(&w->w))
			continue;
		l = bsearch(&(struct lock_at){.key = w->lock_key}, lock, locks, sizeof(*lock),
			    by_key);
		if (!l)
			continue;
		row[n] = (struct fg_kernel_row){
		    .w = w->w, .class = (int)v->locks[l->at].class, .waiter = w};
		name_waiter(names, o, w, &row[n]);
		n++;
	}
	return n;
}

/*
 * Jain, Chiu, Hawe, 1984: (sum x)^2 / (n sum x^2), of each lock over the threads that waited for
 * it.
 */
static int by_lock_key(const void *a, const void *b)
{
	const struct fg_contended_waiter *const *x = a, *const *y = b;

	return ((*x)->lock_key > (*y)->lock_key) - ((*x)->lock_key < (*y)->lock_key);
}

static bool add_fairness(const struct fg_contention_view *v, struct fg_kernel_row *row, size_t n)
{
	const struct fg_contended_waiter **w = calloc(FG_WAITER_ROWS, sizeof(*w));
	size_t count = 0;

	if (!w)
		return false;
	for (size_t i = 0; i < FG_WAITER_ROWS; i++)
		if (v->waiters[i].key && fg_waits_count(&v->waiters[i].w))
			w[count++] = &v->waiters[i];
	qsort(w, count, sizeof(*w), by_lock_key);
	for (size_t i = 0; i < n; i++) {
		size_t low = 0, high = count;
		double sum = 0, squares = 0;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (w[mid]->lock_key < row[i].lock->key)
				low = mid + 1;
			else
				high = mid;
		}
		for (; low < count && w[low]->lock_key == row[i].lock->key; low++) {
			double x = (double)fg_waits_count(&w[low]->w);

			sum += x;
			squares += x * x;
			row[i].waiters++;
		}
		row[i].fair = squares > 0 ? sum * sum / ((double)row[i].waiters * squares) : 0;
	}
	free(w);
	return true;
}

struct fg_kernel_row *fg_kernel_rows(const struct fg_contention_view *v,
				     const struct fg_kernel_options *o,
				     const struct fg_kernel_names *names, size_t *count)
{
	bool of_locks = o->by <= FG_KBY_SLAB;
	struct fg_kernel_row *row = calloc(of_locks ? FG_LOCK_ROWS : FG_WAITER_ROWS, sizeof(*row));
	size_t n, rows = 0;

	if (!row)
		return NULL;
	n = of_locks ? rows_of_locks(v, o, names, row) : rows_of_waiters(v, o, names, row);
	qsort(row, n, sizeof(*row), by_group);
	for (size_t i = 0; i < n; i++)
		if (rows && !strcmp(row[rows - 1].group, row[i].group))
			merge(&row[rows - 1], &row[i]);
		else
			row[rows++] = row[i];
	if (o->by == FG_KBY_LOCK && !add_fairness(v, row, rows)) {
		free(row);
		return NULL;
	}
	for (size_t i = 0; i < rows && o->by == FG_KBY_CGROUP; i++)
		name_cgroup(row[i].waiter->id, row[i].name, sizeof(row[i].name));
	sort_by = o->sort;
	qsort(row, rows, sizeof(*row), by_rank);
	*count = rows;
	return row;
}
