/* SPDX-License-Identifier: MIT */
/*
 * `flexguard kernel profile`: waits for the kernel's own locks while it runs
 * (monitor/contention.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands/kernel.h"
#include "cli/common/exit.h"
#include "cli/common/interrupt.h"
#include "cli/common/json.h"
#include "cli/common/message.h"
#include "cli/common/text.h"
#include "cli/common/units.h"
#include "monitor/clock.h"
#include "monitor/contention.h"
#include "monitor/namespace.h"

/*
 * Between two looks at new locks: an object that is freed in between leaves one without the name of
 * its slab cache.  Not varied.
 */
#define NEW_LOCKS_LOOK_NS 200000000ull

struct profile {
	const struct fg_kernel_options *o;
	const struct fg_contention_view *v;
	struct fg_kernel_row *row;
	size_t rows;
	struct fg_waits sum;
	uint64_t lost, still; /* waits that had not ended */
	uint64_t missed;
	uint64_t took_ns;
	bool nodes; /* several */
	bool names; /* symbols are shown */
};

/* ---- counting --------------------------------------------------------------------- */

static void count(struct fg_contention *c, struct fg_kernel_names *names, uint64_t for_ns)
{
	uint64_t end = for_ns ? fg_now_ns() + for_ns : UINT64_MAX;

	while (!fg_interrupted && fg_now_ns() < end) {
		uint64_t left = end - fg_now_ns(), step = NEW_LOCKS_LOOK_NS;
		struct timespec ts = {.tv_nsec = (long)(left < step ? left : step)};

		nanosleep(&ts, NULL);
		fg_kernel_names_learn(names, c);
	}
	fg_contention_stop(c);
	fg_kernel_names_learn(names, c);
}

static bool has_several_nodes(void)
{
	char line[256] = "";
	FILE *f = fopen("/sys/devices/system/node/online", "re");

	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return strpbrk(line, "-,");
}

static void sum_up(struct profile *p)
{
	const struct fg_contention_counts *n = p->v->counts;

	for (size_t i = 0; i < p->rows; i++) {
		const struct fg_waits *w = &p->row[i].w;

		p->sum.waits += w->waits;
		p->sum.failed += w->failed;
		p->sum.reads += w->reads;
		p->sum.wait_ns += w->wait_ns;
		p->sum.max_ns = w->max_ns > p->sum.max_ns ? w->max_ns : p->sum.max_ns;
	}
	for (size_t i = 0; i < FG_WAITING_ROWS; i++)
		p->still += p->v->waiting[i].key != 0;
	p->lost = n->full_locks + n->full_waiters + n->full_waiting + n->nested + p->missed;
}

/* ---- telling ---------------------------------------------------------------------- */

static void print_head(const struct profile *p)
{
	const struct fg_contention_counts *n = p->v->counts;
	char c[2][24];

	fg_put_text("flexguard kernel profile: %.1f s: %s waits, %s in all",
		    (double)p->took_ns / 1e9,
		    fg_human_count(c[0], sizeof(c[0]), (double)fg_waits_count(&p->sum)),
		    fg_human_ns(c[1], sizeof(c[1]), (double)p->sum.wait_ns));
	if (p->lost)
		fg_put_text("%" PRIu64 " events lost: no room for a lock %" PRIu64
			    ", a waiter %" PRIu64 ", a wait %" PRIu64 ", nested %" PRIu64
			    ", not run by the kernel %" PRIu64,
			    p->lost, (uint64_t)n->full_locks, (uint64_t)n->full_waiters,
			    (uint64_t)n->full_waiting, (uint64_t)n->nested, p->missed);
	if (p->still)
		fg_put_text("%" PRIu64 " wait%s had not ended, and %s not counted", p->still,
			    p->still == 1 ? "" : "s", p->still == 1 ? "is" : "are");
	if (p->o->by == FG_KBY_OWNER)
		fg_put_text("Owners are told by mutexes and writers of rwsems only.");
	if (p->o->by == FG_KBY_SLAB && !p->v->slabs)
		fg_put_text("This kernel does not tell slab caches (Linux 6.13 and later).");
	if (!p->names)
		fg_put_text(
		    "Without names: /proc/kallsyms shows no addresses here (kernel.kptr_restrict, "
		    "CAP_SYSLOG).");
}

static void print_row(const struct profile *p, const struct fg_kernel_row *r, int columns)
{
	bool by_lock = p->o->by == FG_KBY_LOCK;
	char c[3][24], name[FG_KERNEL_NAME];
	int at;

	at = printf("%8s %8s %8s %8s",
		    fg_human_count(c[0], sizeof(c[0]), (double)fg_waits_count(&r->w)),
		    fg_human_ns(c[1], sizeof(c[1]), (double)r->w.wait_ns),
		    fg_human_ns(c[2], sizeof(c[2]), (double)r->w.max_ns),
		    fg_human_ns((char[24]){0}, 24,
				(double)r->w.wait_ns / (double)fg_waits_count(&r->w)));
	if (by_lock && r->waiters > 1)
		at += printf(" %4.2f", r->fair);
	else if (by_lock)
		at += printf(" %4s", "-");
	if (p->nodes && p->o->by <= FG_KBY_SLAB)
		at += printf(" %6s %5.1f", fg_human_count(c[0], sizeof(c[0]), (double)r->across),
			     r->handovers ? (double)(r->handovers + 1) / (double)(r->across + 1) :
					    1.0);
	if (p->v->holds && p->o->by <= FG_KBY_SLAB)
		at += printf(" %8s", r->holds ? fg_human_ns(c[0], sizeof(c[0]),
							    (double)r->hold_ns / (double)r->holds) :
						"-");
	if (p->o->by != FG_KBY_TYPE)
		at += printf(" %-6.6s", r->class < 0 ? "mixed" :
					r->class == FG_CLASS_SEMAPHORE ?
						       "sem" :
						       fg_lock_class_name[r->class]);
	snprintf(name, sizeof(name), "%s", r->name);
	fg_make_printable(name); /* what a program calls itself may be anything */
	fg_cut(name, columns > at + 8 ? columns - at - 1 : 0);
	printf(" %s\n", name);
}

static void print_table(const struct profile *p)
{
	static const char *const what[] = {"LOCK", "TYPE",   "SLAB CACHE", "CALLER",
					   "TASK", "CGROUP", "OWNER"};
	int columns = fg_columns(STDOUT_FILENO);

	print_head(p);
	if (!p->rows)
		return;
	printf("\n%8s %8s %8s %8s", "WAITS", "TOTAL", "MAX", "AVERAGE");
	if (p->o->by == FG_KBY_LOCK)
		printf(" FAIR");
	if (p->nodes && p->o->by <= FG_KBY_SLAB)
		printf(" ACROSS BATCH");
	if (p->v->holds && p->o->by <= FG_KBY_SLAB)
		printf(" %8s", "HOLD");
	if (p->o->by != FG_KBY_TYPE)
		printf(" %-6s", "TYPE");
	printf(" %s\n", what[p->o->by]);
	for (size_t i = 0; i < p->rows && (!p->o->rows || i < p->o->rows); i++)
		print_row(p, &p->row[i], columns);
	if (p->o->rows && p->rows > p->o->rows)
		printf("%8s and %zu more (-n 0 shows all)\n", "", p->rows - p->o->rows);
}

static void json_waits(struct fg_json *j, const struct fg_waits *w)
{
	fg_json_count(j, "waits", fg_waits_count(w));
	fg_json_count(j, "failed", w->failed);
	fg_json_count(j, "reads", w->reads);
	fg_json_count(j, "total_wait_ns", w->wait_ns);
	fg_json_count(j, "max_wait_ns", w->max_ns);
}

/* "key": the number in hexadecimal, a text: JSON's numbers have 53 bits. */
static void json_address(struct fg_json *j, const char *key, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	fg_json_text(j, key, text);
}

static void json_lock(struct fg_json *j, const struct profile *p, const struct fg_kernel_row *r)
{
	json_address(j, "address", r->lock->lock);
	fg_json_text(j, "symbol", *r->symbol ? r->symbol : NULL);
	fg_json_text(j, "slab", *r->slab ? r->slab : NULL);
	fg_json_count(j, "waiters", r->waiters);
	fg_json_real(j, "fairness", 4, r->fair);
	fg_json_open(j, "histogram", '[');
	for (int i = 0; i < FG_WAIT_BUCKETS; i++)
		fg_json_count(j, NULL, r->lock->buckets[i]);
	fg_json_close(j, ']');
}

static void json_stack(struct fg_json *j, const struct fg_kernel_symbols *symbols,
		       const __u64 *stack)
{
	char name[FG_KERNEL_NAME];

	fg_json_open(j, "stack", '[');
	for (int i = 0; i < FG_STACK_FRAMES && stack[i]; i++) {
		fg_kernel_function(symbols, stack[i], name, sizeof(name));
		fg_json_text(j, NULL, name);
	}
	fg_json_close(j, ']');
}

static void json_row(struct fg_json *j, const struct profile *p, const struct fg_kernel_row *r,
		     const struct fg_kernel_symbols *symbols)
{
	fg_json_line(j);
	fg_json_open(j, NULL, '{');
	fg_json_text(j, fg_kernel_by_name[p->o->by], r->name);
	if (p->o->by != FG_KBY_TYPE)
		fg_json_text(j, "type", r->class < 0 ? NULL : fg_lock_class_name[r->class]);
	json_waits(j, &r->w);
	fg_json_count(j, "avg_wait_ns", r->w.wait_ns / fg_waits_count(&r->w));
	if (p->o->by <= FG_KBY_SLAB) {
		fg_json_count(j, "handovers", r->handovers);
		fg_json_count(j, "across_nodes", r->across);
		fg_json_count(j, "longest_batch", r->batch);
		if (p->v->holds) {
			fg_json_count(j, "holds", r->holds);
			fg_json_count(j, "total_hold_ns", r->hold_ns);
			fg_json_count(j, "max_hold_ns", r->hold_max_ns);
		}
	}
	if (r->lock)
		json_lock(j, p, r);
	if (p->o->by == FG_KBY_TASK || (p->o->by == FG_KBY_OWNER && r->waiter->id)) {
		fg_json_count(j, "tid", r->waiter->id);
		fg_json_count(j, "pid", r->waiter->tgid);
	}
	if (p->o->by == FG_KBY_CGROUP)
		fg_json_count(j, "cgroup_id", r->waiter->id);
	if (p->o->by == FG_KBY_CALLER)
		json_stack(j, symbols, r->waiter->stack);
	fg_json_close(j, '}');
}

static void print_json(const struct profile *p, const struct fg_kernel_symbols *symbols)
{
	const struct fg_contention_counts *n = p->v->counts;
	struct fg_json j = {.f = stdout};
	struct utsname u;

	uname(&u);
	fg_json_open(&j, NULL, '{');
	fg_json_text(&j, "kernel", u.release);
	fg_json_real(&j, "seconds", 3, (double)p->took_ns / 1e9);
	fg_json_text(&j, "by", fg_kernel_by_name[p->o->by]);
	json_waits(&j, &p->sum);
	fg_json_count(&j, "events", n->ended);
	fg_json_count(&j, "unmatched", n->unmatched);
	fg_json_count(&j, "still_waiting", p->still);
	fg_json_open(&j, "lost", '{');
	fg_json_count(&j, "total", p->lost);
	fg_json_count(&j, "no_room_lock", n->full_locks);
	fg_json_count(&j, "no_room_waiter", n->full_waiters);
	fg_json_count(&j, "no_room_wait", n->full_waiting);
	fg_json_count(&j, "nested", n->nested);
	fg_json_count(&j, "not_run", p->missed);
	fg_json_close(&j, '}');
	fg_json_flag(&j, "several_nodes", p->nodes);
	fg_json_flag(&j, "tells_holds", p->v->holds);
	fg_json_flag(&j, "tells_slabs", p->v->slabs);
	fg_json_flag(&j, "tells_names", p->names);
	fg_json_open(&j, "rows", '[');
	for (size_t i = 0; i < p->rows && (!p->o->rows || i < p->o->rows); i++)
		json_row(&j, p, &p->row[i], symbols);
	fg_json_close(&j, ']');
	fg_json_close(&j, '}');
	fg_json_end(&j);
}

/* ---- the command ------------------------------------------------------------------ */

static enum fg_contention_by waiters_by(enum fg_kernel_by by)
{
	return by == FG_KBY_CALLER ? FG_BY_CALLER :
	       by == FG_KBY_CGROUP ? FG_BY_CGROUP :
	       by == FG_KBY_OWNER  ? FG_BY_OWNER :
				     FG_BY_TASK;
}

static int profile(struct fg_contention *c, const struct fg_kernel_options *o,
		   struct fg_kernel_names *names)
{
	struct profile p = {.o = o, .v = fg_contention_view(c), .names = names->symbols};
	uint64_t start = fg_now_ns();

	if (!o->for_ns)
		fg_note("counting waits for the kernel's locks; Ctrl-C ends");
	if (o->holds)
		fg_note("until then each release of a mutex or an rwsem in the "
			"kernel takes longer");
	count(c, names, o->for_ns);
	p.took_ns = fg_now_ns() - start;
	p.missed = fg_contention_missed(c);
	p.nodes = has_several_nodes();
	p.row = fg_kernel_rows(p.v, o, names, &p.rows);
	if (!p.row) {
		fg_error("out of memory");
		return FG_EXIT_OWN;
	}
	sum_up(&p);
	if (o->json)
		print_json(&p, names->symbols);
	else
		print_table(&p);
	free(p.row);
	return 0;
}

/* False only where the kernel is sure: of nobody, or of a thread, no wait would ever be counted. */
static bool may_be_process(unsigned pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return errno != ESRCH && errno != EINVAL && errno != ENOENT;
	close(fd);
	return true;
}

/* Where programs at functions are refused, and those at tracepoints are not. */
static bool works_without_holds(struct fg_contention_config cfg)
{
	struct fg_contention *c;
	char why[300];

	cfg.holds = false;
	if (fg_contention_open(&c, &cfg, why, sizeof(why)))
		return false;
	fg_contention_close(c);
	return true;
}

int fg_kernel_profile(const struct fg_kernel_options *o)
{
	struct fg_contention_config cfg = {
	    .by = waiters_by(o->by), .tgid = o->pid, .holds = o->holds};
	struct fg_kernel_names *names = NULL;
	struct fg_contention *c;
	char why[300];
	int err, status;

	if (o->pid && !fg_in_first_pid_namespace()) {
		fg_error("-p: processes have other numbers in this container, and the kernel "
			 "counts by the machine's: run it outside");
		return FG_EXIT_OWN;
	}
	if (o->pid && !may_be_process(o->pid)) {
		fg_error("-p: no process has the number %u: pidof PROGRAM tells it", o->pid);
		return FG_EXIT_OWN;
	}
	err = fg_contention_preflight(why, sizeof(why));
	if (!err) {
		names = fg_kernel_names_open();
		if (!names)
			snprintf(why, sizeof(why), "out of memory");
		err = names ? fg_contention_open(&c, &cfg, why, sizeof(why)) : -ENOMEM;
	}
	if (err) {
		fg_kernel_names_close(names);
		fg_error("%s%s",
			 names && o->holds && works_without_holds(cfg) ?
			     "without --holds it works here; with it, " :
			     "",
			 why);
		return fg_exit_of(err);
	}
	fg_catch_interrupts();
	status = profile(c, o, names);
	fg_contention_close(c);
	fg_kernel_names_close(names);
	return status;
}
